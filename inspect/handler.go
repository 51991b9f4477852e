package inspect

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime/trace"
	"strconv"
	"strings"
	"time"

	"github.com/coir-go/coir/snapshot"
)

// Source is a source of snapshots: a [coir.Runtime], or anything else that can describe itself.
type Source interface {
	Snapshot(o snapshot.Options) *snapshot.Snapshot
}

// Option is an option of [Handler], [Serve] and [Watch].
type Option func(*settings)

type settings struct {
	of       []Source
	recorder *Recorder

	// For Handler and Serve.
	hosts  []string
	remote bool

	// For Watch.
	interval time.Duration
	logger   *slog.Logger
	dir      string
	flight   *trace.FlightRecorder
}

// WithSource sets the sources to show, instead of the default runtime.
func WithSource(of ...Source) Option {
	return func(o *settings) { o.of = append(o.of, of...) }
}

// WithRecorder makes a handler serve the recorded events of r as trace.json, and makes [Watch] write them to the
// directory of [WithDir].
func WithRecorder(r *Recorder) Option {
	return func(o *settings) { o.recorder = r }
}

// WithHost allows requests for these host names, which have no port. Requests for this machine (localhost), and for the
// address at which the connection arrived, are always allowed. Use WithHost if clients reach the handler by another
// name, for example through a proxy.
func WithHost(names ...string) Option {
	return func(o *settings) { o.hosts = append(o.hosts, names...) }
}

// WithRemote lets [Serve] listen on an address that other machines can reach.
func WithRemote() Option {
	return func(o *settings) { o.remote = true }
}

// Handler returns a handler that shows the default runtime, or the sources of [WithSource]. It can be mounted anywhere,
// with or without [http.StripPrefix]: it uses only the last element of the path.
func Handler(opts ...Option) http.Handler {
	var o settings
	for _, opt := range opts {
		opt(&o)
	}
	return newHandler(&o)
}

func newHandler(o *settings) *handler {
	n := max(1, len(o.of))
	return &handler{
		hosts: o.hosts,
		cache: cache{
			of: o.of, kept: make([]kept, n), last: map[key]*document{}, busy: make(chan struct{}, 1),
			explain: snapshot.Explain, recorder: o.recorder,
		},
		limits: defaultLimits,
	}
}

// limits are bounds that tests lower.
type limits struct {
	write time.Duration // the time within which a response must be read
}

var defaultLimits = limits{write: time.Minute}

type handler struct {
	hosts  []string
	cache  cache
	limits limits
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if status, why := h.refusal(r); status != 0 {
		if status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", "GET, HEAD")
		}
		fail(w, status, why)
		return
	}
	// A slow reader must not hold the document for long.
	control := http.NewResponseController(w)
	if control.SetWriteDeadline(time.Now().Add(h.limits.write)) == nil {
		defer func() {
			if control.Flush() == nil {
				_ = control.SetWriteDeadline(time.Time{}) // the next request of the connection sets its own
			}
		}()
	}
	query := r.URL.Query()
	of := 0
	if text := query.Get("of"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= h.cache.sources() {
			fail(w, http.StatusNotFound, "unknown runtime: of is a number below "+strconv.Itoa(h.cache.sources()))
			return
		}
		of = n
	}
	switch name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; name {
	case "":
		if r.URL.Path == "" { // mounted without a final slash, so relative links would lack the last element
			path, _, _ := strings.Cut(r.RequestURI, "?")
			w.Header().Set("Location", "./"+path[strings.LastIndexByte(path, '/')+1:]+"/")
			w.WriteHeader(http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", livePolicy)
		w.Header().Set("Content-Length", strconv.Itoa(len(livePage)))
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, livePage)
		}
	case "text":
		h.send(w, r, key{of: of, text: true, stacks: query.Get("stacks") == "1"}, "text/plain; charset=utf-8")
	case "snapshot.json":
		h.send(w, r, key{of: of}, "application/json")
	case "dump":
		name := time.Now().UTC().Format("coir-20060102-150405.json")
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		h.send(w, r, key{of: of, dump: true, stacks: query.Get("stacks") == "1"}, "application/json")
	case "fiber":
		id, err := strconv.ParseUint(query.Get("id"), 10, 64)
		if err != nil {
			fail(w, http.StatusBadRequest, "which fiber? write fiber?id=7")
			return
		}
		h.fiber(w, r, of, id)
	case "trace.json":
		last, err := seconds(query.Get("seconds"))
		switch {
		case h.cache.recorder == nil:
			fail(w, http.StatusNotFound, "nothing is recorded: use coir.WithObserver and inspect.WithRecorder")
		case h.cache.recorder.last.Load() == 0:
			fail(w, http.StatusNotFound, "the recorder has seen no fiber: call coir.Configure(coir.WithObserver(recorder)) "+
				"before the first Run")
		case err != nil:
			fail(w, http.StatusBadRequest, "how many seconds? write trace.json?seconds=5")
		default:
			h.send(w, r, key{trace: true, last: last}, "application/json")
		}
	default:
		fail(w, http.StatusNotFound,
			"not found: try text, snapshot.json, dump, fiber?id=7, trace.json, or the page")
	}
}

// seconds parses a number of seconds. An empty text means 0.
func seconds(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 20) // 12 days
	return time.Duration(n) * time.Second, err
}

// send answers with a document.
func (h *handler) send(w http.ResponseWriter, r *http.Request, k key, kind string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Vary", "Accept-Encoding")
	if r.Method == http.MethodHead {
		return
	}
	d, err := h.cache.get(r.Context(), k)
	if err != nil {
		w.Header().Del("Content-Disposition")
		unavailable(w, err)
		return
	}
	defer h.cache.release(d)
	if acceptsGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(d.packed)))
		_, _ = w.Write(d.packed) // an error means that the reader is gone, or too slow
		return
	}
	_ = d.unpack(w)
}

// fiber answers with one fiber and its stack.
func (h *handler) fiber(w http.ResponseWriter, r *http.Request, of int, id uint64) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodHead {
		return
	}
	f, err := h.cache.fiber(r.Context(), of, id)
	switch {
	case err != nil:
		unavailable(w, err)
	case f == nil:
		fail(w, http.StatusNotFound, "fiber "+strconv.FormatUint(id, 10)+" has ended")
	default:
		_ = json.NewEncoder(w).Encode(f)
	}
}

func unavailable(w http.ResponseWriter, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return // the reader is gone
	}
	w.Header().Set("Retry-After", "1")
	fail(w, http.StatusServiceUnavailable, err.Error())
}

func fail(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "inspect: "+strings.TrimPrefix(why, "inspect: ")+"\n")
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, params, _ := strings.Cut(part, ";")
		if strings.TrimSpace(name) == "gzip" {
			q, ok := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
			weight, err := strconv.ParseFloat(q, 64)
			return !ok || err != nil || weight > 0
		}
	}
	return false
}

// unpack writes the document uncompressed.
func (d *document) unpack(w io.Writer) error {
	from, err := gzip.NewReader(bytes.NewReader(d.packed))
	if err != nil {
		return err
	}
	_, err = io.Copy(w, from)
	return err
}
