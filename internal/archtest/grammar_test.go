package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGrammar checks that the names of all public packages follow the grammar, those of nested modules too.
func TestGrammar(t *testing.T) {
	for _, dir := range publicEverywhere(t) {
		found, err := Grammar(filepath.Join(root(t), dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range found {
			t.Errorf("%s/%s; docs/HACKING.md has the grammar: rename it, or add the exception to "+
				"internal/archtest/grammar.go", dir, what)
		}
	}
}

// Each rule is broken once here, and followed once.
func TestGrammarFindsWhatBreaksIt(t *testing.T) {
	const text = `package p

type Color int

const (
	Red Color = iota
	ColorGreen
	Blue
	Other = 3
)

type KeepPolicy uint8

type StopKind string

const (
	KeepAll = KeepPolicy(1)
	Nothing = KeepPolicy(2)
	StopNow StopKind = "now"
	Later StopKind = "later"
)

func Fast() RunOption
func WithSpeed() RunOption
func OnEnd(f func()) RunOption
func Online() RunOption
func OnTop() RunOption
func (t *T) OnDone(f func(v int))
func After(d int) Case
func (t *T) DoneCase() Case
func (t *T) Done() Case
func Late(n int, ctx context.Context)
func Named(c context.Context)
func (t *T) TryTake(ctx context.Context)
func (t *T) AllOf(ctx context.Context) iter.Seq[int]
func (t *T) All(ctx context.Context) iter.Seq2[int, error]
func (t *T) AllHeld() iter.Seq[int]
func (t *T) RecvTimeout(ctx context.Context, d time.Duration) int
func (t *T) SendTimeout(ctx context.Context, d time.Duration, v int)
func (t *T) OpenTimeout(ctx context.Context, d time.Duration, opts ...NameOption)
func (t *T) WaitTimeout(opts ...NameOption)
func (t *T) Country() int
func Count(ctx context.Context) int
func (t *T) CountHeld() int
func WithCancel(ctx context.Context) (context.Context, context.CancelFunc)
func WithTimeout(ctx context.Context, d time.Duration) context.Context
func WithSlack() int
func New(opts ...NameOption) *T
func NewNamed(size int, name string) *T
func (t *T) Each(ctx context.Context) iter.Seq2[int, error]
func (t *hidden) Each() iter.Seq[int]
func (t *T) Close()
func (t *T) Abort(cause error) bool
func (f *File) Close() error
func NewLoud(loud bool) *T
func (t *T) Take(n int)
func (t *T) TryWait(n int) bool
func (t *T) TakeCase() Case
func (t *T) TickCase() Case
func (t *T) GoneCase() Case

type ChanOption interface { set(*settings) }
type RunOption func(*settings)
type WideOption func(*T)
type TextOption string
type OpenOption struct { Name string }
type ShutOption struct { name string }

type TStats struct { Sent uint64; Len int }
type OldStats struct { Sent int64 }
func Options() []client.Option

type Store interface {
	Get(ctx context.Context, key string) []byte
	Put(key string, ctx context.Context)
	TryGet(ctx context.Context)
	TryLock() bool
	hide(n int, ctx context.Context)
	io.Closer
}

type secret interface { Open(n int, ctx context.Context) }
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := Grammar(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, what := range found {
		_, what, _ = strings.Cut(what, ": ")
		name, _, _ := strings.Cut(what, " ")
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{
		"AllOf", "Blue", "Close", "CountHeld", "Done", "Each", "Fast", "Late", "Later", "Named", "NewLoud", "NewNamed", "Nothing",
		"OldStats", "OnTop", "Online", "OpenOption", "Put", "Red", "SendTimeout", "TextOption", "TickCase", "TryGet", "TryLock",
		"TryTake", "TryWait", "WaitTimeout", "WideOption", "WithSlack", "WithTimeout",
	}
	if !slices.Equal(names, want) {
		t.Errorf("found %q, want %q:\n%s", names, want, strings.Join(found, "\n"))
	}
}
