package console

import (
	"fmt"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/audit/index"
	"github.com/wasmgate/wasmgate/internal/console/pages"
)

// fill gives every field of a value something of its own: each text is a word that no other field has.
func fill(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.ToLower(strings.ReplaceAll(path, ".", "-")))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint, reflect.Uint64:
		v.SetUint(3)
	case reflect.Float64:
		v.SetFloat(3)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), fmt.Sprint(path, i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(v.Field(i), path+"."+f.Name)
			}
		}
	}
}

// printed is how Go prints what is no text: structs, maps, pointers, and formats that failed.
var printed = regexp.MustCompile(`&?\{[^{}<>]*(true|false|&lt;nil&gt;|\[)[^{}<>]*\}|map\[|%!|&lt;nil&gt;|0xc0`)

func rendered(t *testing.T, name string, of any) string {
	t.Helper()
	w := httptest.NewRecorder()
	pages.Write(w, 200, name, pages.View{Title: name, At: name, Of: of})
	if body := w.Body.String(); w.Code != 200 || printed.MatchString(body) {
		t.Errorf("page %s: %d, and prints %q", name, w.Code, printed.FindString(body))
	}
	return w.Body.String()
}

// With every kind of fault at once, each page that shows the status shows its own, as text.
func TestFaults(t *testing.T) {
	s := new(overview.Status)
	fill(reflect.ValueOf(s).Elem(), "status")
	wants := func(page, body string, words ...string) {
		t.Helper()
		for _, w := range words {
			if w == "" || !strings.Contains(body, w) {
				t.Errorf("page %s does not show %q", page, w)
			}
		}
	}
	shown := rendered(t, "overview", map[string]any{"Status": s, "Problems": problemsOf(s), "Calls": 1, "Codes": []count{{"ok", 1}}, "Ready": 0, "Quarantined": 1, "Chart": pages.Chart(pages.LastHour(time.Now())), "Paused": true, "Indexed": progressDone()})
	wants("overview", shown, s.Problems...)
	wants("overview", shown, "3 calls need approval")
	for _, one := range s.Servers {
		wants("overview", shown, one.Error, one.Circuit)
		wants("overview", shown, append(one.Quarantined, one.Unenforced...)...)
		for _, n := range one.Notes {
			wants("overview", shown, n.Text)
		}
		body := rendered(t, "server", map[string]any{"Server": one, "Tools": []inventory.Tool{}, "Paused": []string{}})
		wants("server", body, append(append(one.Quarantined, one.Unenforced...), one.Error, one.Circuit)...)
		for _, n := range one.Notes {
			wants("server", body, n.Text, n.Tool)
		}
	}
	if strings.Contains(shown, "None.") {
		t.Error("the overview says that there are no problems")
	}
	servers := rendered(t, "servers", map[string]any{"Status": s, "Paused": []string{}})
	for _, one := range s.Servers {
		wants("servers", servers, one.Error, string(one.Phase))
	}
	for _, m := range s.Modules {
		wants("servers", servers, m.Error, m.Note)
	}
	well := &overview.Status{Servers: s.Servers[:0]}
	if body := rendered(t, "overview", map[string]any{"Status": well, "Problems": problemsOf(well), "Calls": 0, "Ready": 0, "Quarantined": 0, "Chart": pages.Chart(pages.LastHour(time.Now())), "Paused": false, "Indexed": progressDone()}); !strings.Contains(body, "None.") {
		t.Error("the overview finds a problem where there is none")
	}
}

func progressDone() index.Progress { return index.Progress{Part: 1} }
