package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir/snapshot"
)

// Read returns what a handler has served, and a page holds the same.
func TestRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handlerOf(&fake{s: deadlock(), stack: func(id uint64) string { return fmt.Sprint("stack of ", id) }})
		for _, path := range []string{"/snapshot.json", "/dump", "/dump?stacks=1"} {
			want := deadlock()
			if strings.Contains(path, "stacks") {
				for i := range want.Fibers {
					want.Fibers[i].Stack = fmt.Sprint("stack of ", want.Fibers[i].ID)
				}
			}
			body := ask(h, "GET", "http://localhost"+path).Body
			text := bytes.Clone(body.Bytes())
			d, err := Read(body)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(d.Snapshot, want) {
				t.Errorf("%s: read is\n%+v, want\n%+v", path, d.Snapshot, want)
			}
			if !reflect.DeepEqual(d.Explanations, whyDeadlock()) {
				t.Errorf("%s: read are %+v", path, d.Explanations)
			}
			var again bytes.Buffer
			if err := writeDump(&again, d); err != nil || !bytes.Equal(again.Bytes(), text) {
				t.Errorf("%s: written again it is another text: %v\n%s", path, err, again.Bytes())
			}
			if wrong := invalid(schema(t), schema(t), decoded(t, text), "dump"); len(wrong) > 0 {
				t.Errorf("%s is not as schema.json says: %q", path, wrong)
			}
			var a, b bytes.Buffer
			if err := d.WriteText(&a); err != nil {
				t.Fatal(err)
			}
			if err := writeText(&b, deadlock(), whyDeadlock(), true); err != nil || !strings.Contains(path, "stacks") &&
				a.String() != b.String() {
				t.Errorf("%s: the text of the dump is another one:\n%s", path, a.String())
			}
		}
	})
}

// A fiber is encoded as encoding/json would encode it, with any field set or not.
func TestFibersAreEncodedAsTheirTagsSay(t *testing.T) {
	values := []any{
		7, uint64(7), "plain", "<a & \"b\">\\\x1b\xff\u2028ü", true, noon,
		noon.Add(time.Nanosecond).In(time.FixedZone("", 3600)),
		[]snapshot.Wait{{}, {Kind: snapshot.WaitSend, Text: "to send", Object: 1, Fiber: 2, Nursery: 3}}}
	fibers := []snapshot.Fiber{{}}
	for i := range reflect.TypeFor[snapshot.Fiber]().NumField() {
		set := 0
		for _, v := range values {
			for _, all := range []bool{false, true} {
				var f snapshot.Fiber
				if all {
					f = deadlock().Fibers[3]
				}
				field := reflect.ValueOf(&f).Elem().Field(i)
				if value := reflect.ValueOf(v); value.Kind() == field.Kind() && value.CanConvert(field.Type()) {
					field.Set(value.Convert(field.Type()))
					fibers = append(fibers, f)
					set++
				}
			}
		}
		if set == 0 {
			t.Errorf("no value is of the type of %s: add one", reflect.TypeFor[snapshot.Fiber]().Field(i).Name)
		}
	}
	for _, f := range append(fibers, deadlock().Fibers...) {
		want, err := json.Marshal(&f)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendFiber(nil, &f); !bytes.Equal(got, want) {
			t.Errorf("it is encoded as\n%s, want\n%s; correct appendFiber", got, want)
		}
	}
	if n := reflect.TypeFor[snapshot.Wait]().NumField(); n != 5 {
		t.Errorf("a wait has %d fields: add them to appendWait and to this test", n)
	}
}

// An explanation about many fibers names the first of them, and counts the others.
func TestLongExplanations(t *testing.T) {
	var b bytes.Buffer
	e := snapshot.Explanation{Text: "all wait", Fibers: make([]uint64, 1000)}
	if err := writeDump(&b, &Dump{Snapshot: deadlock(), Explanations: []snapshot.Explanation{e}}); err != nil {
		t.Fatal(err)
	}
	var w wire
	if err := json.Unmarshal(b.Bytes(), &w); err != nil {
		t.Fatal(err)
	}
	if got := w.Explanations[0]; len(got.Fibers) != mostListed || got.Omitted != 1000-mostListed {
		t.Errorf("%d fibers, and %d others", len(got.Fibers), got.Omitted)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{"", "{", "[]", "{}", `{"fibers":[]}`, `{"version":2}`, `{"version":1,"fibers":7}`} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "inspect: ") {
			t.Errorf("Read of %q returns %v", text, err)
		}
	}
}

// A snapshot with more fibers than are shown says how many it omits.
func TestManyFibersAreOmitted(t *testing.T) {
	for _, most := range []int{1, 50, 100, 1000} {
		var b bytes.Buffer
		seen, err := encode(&b, &fake{s: many(100)}, most, false, 1, new(room),
			func(*snapshot.Snapshot) []snapshot.Explanation { return nil })
		if err != nil {
			t.Fatal(err)
		}
		d, err := Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		want := min(most, 100)
		if len(d.Snapshot.Fibers) != want || d.Snapshot.Omitted != 100-want || len(seen.Fibers) != want ||
			seen.Omitted != 100-want {
			t.Errorf("with at most %d there are %d fibers, and %d are omitted", most, len(d.Snapshot.Fibers),
				d.Snapshot.Omitted)
		}
	}
}

// FuzzRead: whatever a file contains, its text and its page can be written, and the page contains it.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := writeDump(&b, &Dump{Snapshot: deadlock(), Explanations: whyDeadlock()}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"version":1,"nurseries":[{"id":1,"owner":1,"parent":2},{"id":2,"owner":2,"parent":1}],"fibers":[{"id":1,"nursery":2},{"id":2,"nursery":1}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		var out, page bytes.Buffer
		if err := d.WriteText(&out); err != nil {
			t.Fatal(err)
		}
		if err := d.WritePage(&page); err != nil || bytes.Count(page.Bytes(), []byte("</script>")) != 2 {
			t.Errorf("the page is broken: %v", err)
		}
		if n := bytes.Count(out.Bytes(), []byte("\n")); n > treeLines+objectLines+2*mostExplained+20 {
			t.Errorf("the text has %d lines", n)
		}
	})
}

// schema.json is the schema of the Go types, with their comments. The test writes it with -update.
func TestSchemaIsThatOfTheTypes(t *testing.T) {
	g := generator{docs: map[string]string{}, defs: map[string]any{}}
	g.comments(t, "../snapshot/snapshot.go")
	g.comments(t, "../snapshot/explain.go")
	g.comments(t, "encode.go")
	root := g.object(reflect.TypeFor[wire]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://github.com/coir-go/coir/inspect/schema.json"
	root["title"] = "What a running program of coir does"
	root["$defs"] = g.defs
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.json", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.ReplaceAll(have, []byte("\r\n"), []byte("\n")), b.Bytes()) {
		t.Error("schema.json is not that of the types: run go test ./inspect -run Schema -update, " +
			"and raise version if a reader of the old form would misread the new one")
	}
}

// The check of the schema finds mistakes.
func TestSchemaRefuses(t *testing.T) {
	const good = `{"version":1,"runtimes":1,"taken":"2026-11-18T12:00:00Z","took":1,"process":{"pid":1,"program":"","go":"","coir":"","live":0,"spawned":0},` +
		`"fibers":[{"id":1,"name":"a","nursery":1,"state":"ready","spawned":"","waits":0}],"nurseries":[],"objects":[],"workers":[],"explanations":[]}`
	s := schema(t)
	if wrong := invalid(s, s, decoded(t, []byte(good)), "dump"); len(wrong) > 0 {
		t.Error(wrong)
	}
	for from, to := range map[string]string{
		`"version":1,`: "", `"id":1`: `"id":"1"`, `"state":"ready"`: `"state":"lost"`, `"took":1`: `"took":1.5`, `"fibers":[`: `"fibers":[7,`, `"workers":[]`: `"workers":{}`,
		`2026-11-18T12:00:00Z`: `noon`,
	} {
		if wrong := invalid(s, s, decoded(t, []byte(strings.Replace(good, from, to, 1))), "dump"); len(wrong) != 1 {
			t.Errorf("with %q in place of %q it finds %q", to, from, wrong)
		}
	}
}

// generator makes a schema from types.
type generator struct {
	docs map[string]string // comments, by type and by type.field
	defs map[string]any
}

// comments reads the comments of types and fields, and the constants of string types.
func (g *generator) comments(t *testing.T, path string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	sentence := func(groups ...*ast.CommentGroup) string {
		for _, c := range groups {
			if c != nil {
				return strings.NewReplacer("[", "", "]", "").Replace(strings.Join(strings.Fields(c.Text()), " "))
			}
		}
		return ""
	}
	for _, decl := range file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				g.docs[s.Name.Name] = sentence(s.Doc, d.Doc)
				if st, ok := s.Type.(*ast.StructType); ok {
					for _, f := range st.Fields.List {
						for _, name := range f.Names {
							g.docs[s.Name.Name+"."+name.Name] = sentence(f.Doc, f.Comment)
						}
					}
				}
			case *ast.ValueSpec:
				if typ, ok := s.Type.(*ast.Ident); ok && len(s.Values) == 1 {
					if lit, ok := s.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
						g.docs["enum "+typ.Name] += " " + strings.Trim(lit.Value, `"`)
					}
				}
			}
		}
	}
}

// object returns the schema of a struct.
func (g *generator) object(typ reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	var add func(typ reflect.Type)
	add = func(typ reflect.Type) {
		for f := range typ.Fields() {
			if f.Anonymous {
				add(f.Type)
				continue
			}
			name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
			s := g.schema(f.Type)
			if doc := g.docs[typ.Name()+"."+f.Name]; doc != "" {
				s["description"] = doc
			}
			properties[name] = s
			if rest == "" {
				required = append(required, name)
			}
		}
	}
	add(typ)
	slices.Sort(required)
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

func (g *generator) schema(typ reflect.Type) map[string]any {
	switch typ {
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[time.Duration]():
		return map[string]any{"type": "integer"}
	}
	switch typ.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		s := map[string]any{"type": "string"}
		if words := g.docs["enum "+typ.Name()]; words != "" {
			s["enum"] = strings.Fields(words)
		}
		return s
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": g.schema(typ.Elem())}
	case reflect.Struct:
		name := strings.ToUpper(typ.Name()[:1]) + typ.Name()[1:]
		if g.defs[name] == nil {
			g.defs[name] = true // now, because a type may contain itself
			s := g.object(typ)
			s["description"] = g.docs[typ.Name()]
			g.defs[name] = s
		}
		return map[string]any{"$ref": "#/$defs/" + name}
	}
	panic("no schema for " + typ.String())
}

func schema(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, text).(map[string]any)
}

func decoded(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// invalid checks a value against a schema. It knows only the parts of the schema language that schema.json uses.
func invalid(root, s map[string]any, v any, at string) (wrong []string) {
	if ref, ok := s["$ref"].(string); ok {
		return invalid(root, root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), v, at)
	}
	bad := func(what string) []string { return append(wrong, at+" "+what) }
	switch v := v.(type) {
	case map[string]any:
		if s["type"] != "object" {
			return bad("is an object")
		}
		for _, name := range s["required"].([]any) {
			if _, ok := v[name.(string)]; !ok {
				wrong = bad("has no " + name.(string))
			}
		}
		for name, value := range v {
			p, ok := s["properties"].(map[string]any)[name].(map[string]any)
			if !ok {
				wrong = bad("has " + name)
				continue
			}
			wrong = append(wrong, invalid(root, p, value, at+"."+name)...)
		}
	case []any:
		if s["type"] != "array" {
			return bad("is an array")
		}
		for i, value := range v {
			wrong = append(wrong, invalid(root, s["items"].(map[string]any), value, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case string:
		if s["type"] != "string" {
			return bad("is a string")
		}
		if words, ok := s["enum"].([]any); ok && !slices.Contains(words, any(v)) {
			return bad("is none of the words")
		}
		if _, err := time.Parse(time.RFC3339, v); s["format"] == "date-time" && err != nil {
			return bad("is no time")
		}
	case float64:
		if s["type"] != "integer" || v != math.Trunc(v) || s["minimum"] != nil && v < s["minimum"].(float64) {
			return bad("is no such number")
		}
	case bool:
		if s["type"] != "boolean" {
			return bad("is a boolean")
		}
	default:
		return bad("is null")
	}
	return wrong
}

// A room sorts its fibers by their numbers, and each fiber keeps its waits.
func TestRoomSorts(t *testing.T) {
	for n := range 8 {
		for seed := range uint64(20) {
			var r room
			for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(n) {
				text := strconv.Itoa(i)
				r.add(&snapshot.Fiber{ID: uint64(i), Name: text, Wait: []snapshot.Wait{{Text: text}}})
			}
			r.sort()
			for i, f := range r.fibers {
				if text := strconv.Itoa(i); f.ID != uint64(i) || f.Name != text || f.Wait[0].Text != text {
					t.Fatalf("%d of %d: %+v", i, n, f)
				}
			}
		}
	}
}
