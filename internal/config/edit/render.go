package edit

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// Render returns the servers as the `servers:` block of a wasmgate.yaml, which
// [config.Load] reads back as they are. Values are written with their variables, as
// [config.ImportMCP] returns them; pass the servers through package extract first. What env_from
// and env_file have brought stands under env. A fault becomes a comment above its
// server.
func Render(servers []config.Server) []byte {
	var b bytes.Buffer
	b.WriteString("servers:\n")
	for _, s := range servers {
		renderServer(&b, s)
	}
	return b.Bytes()
}

func renderServer(b *bytes.Buffer, s config.Server) {
	if s.Fault != "" {
		fmt.Fprintf(b, "  # %s\n", oneLine(s.Fault))
	}
	fmt.Fprintf(b, "  %s:\n", tree.Scalar(s.ID))
	l := lines{b, "    "}
	l.text("module", s.Module.Path+s.Module.Ref, "")
	for _, k := range decode.Keys(reflect.ValueOf(s.Module)) {
		if slices.Contains(config.ModuleKeys, k.Name) && !k.Field.IsZero() {
			l.value(k)
		}
	}
	l.values(s)
}

// RenderConfine returns c as the part of a wasmgate.yaml that belongs to a server.
// [config.Load] reads it back as it is.
func RenderConfine(server string, c config.Confine) []byte {
	for _, list := range []*[]string{&c.Read, &c.Write, &c.Execute} {
		*list = slices.Clone(*list)
		for i, p := range *list {
			(*list)[i] = strings.ReplaceAll(p, "$", "$$") // a dollar that stands for itself
		}
	}
	b := bytes.NewBufferString(fmt.Sprintf("servers:\n  %s:\n", tree.Scalar(server)))
	lines{b, "    "}.under("confine", func(l lines) { l.values(c) })
	return b.Bytes()
}

// values writes the keys of a struct that are not as they are by default.
func (l lines) values(of any) {
	v := reflect.ValueOf(of)
	without := reflect.New(v.Type())
	config.Fill(without.Interface())
	plain := decode.Keys(without.Elem())
	for i, k := range decode.Keys(v) {
		if k.Name != "*" && k.Name != "=" && !reflect.DeepEqual(k.Field.Interface(), plain[i].Field.Interface()) {
			l.value(k)
		}
	}
}

// value writes a key.
func (l lines) value(k decode.Key) {
	switch v := k.Field.Interface().(type) {
	case bool:
		word := strconv.FormatBool(v)
		if len(k.Words) > 0 {
			word = strings.Split(k.Words[0], "|")[map[bool]int{true: 1}[v]]
		}
		l.line(k.Name, word)
	case int:
		l.number(k.Name, v)
	case int64:
		l.size(k.Name, v)
	case time.Duration:
		if v < 0 {
			l.line(k.Name, tree.Scalar("off"))
		}
		l.time(k.Name, max(v, 0))
	case string:
		l.text(k.Name, v, "")
	case config.Secret:
		l.text(k.Name, string(v), "")
	case []string:
		if slices.ContainsFunc(v, func(s string) bool { return len(s) > 20 || tree.Scalar(s) != s }) {
			l.column(k.Name, v)
		} else {
			l.row(k.Name, v)
		}
	case []uint16:
		l.line(k.Name, "["+strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ", "), "[]")+"]")
	case map[string]config.Secret:
		l.block(k.Name, v)
	case *config.Apps:
		l.switched(k.Name, v.Mode, *v)
	case *config.Skills:
		l.switched(k.Name, v.Mode, *v)
	default:
		l.under(k.Name, func(l lines) { l.tables(k.Field) })
	}
}

// switched writes on, off or a table.
func (l lines) switched(key, mode string, all any) {
	if mode != "" {
		l.text(key, mode, "")
		return
	}
	l.under(key, func(l lines) { l.values(all) })
}

// tables writes a struct, a pointer to one, or several.
func (l lines) tables(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		l.values(v.Interface())
	case reflect.Pointer:
		l.values(v.Elem().Interface())
	case reflect.Slice:
		for i := range v.Len() {
			all := decode.Keys(v.Index(i))
			all[1].Name = all[0].Field.String()
			l.value(all[1])
		}
	}
}
