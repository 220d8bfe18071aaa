package config

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/apps"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// A key of the file is declared once, at the field that holds its value:
//
//	Timeout time.Duration `key:"timeout 1ms..24h" default:"30s" restart:"yes"`
//
// What follows the name says which values are taken; with the type of the field it gives the
// reader, what writes it ([lines.values]), the default ([decoder.fill]), and whether a change
// waits for a restart ([Config.NeedRestart]):
//
//	1..64         bounds of a number, a size or a duration; durations and sizes with their units
//	on|off        one of the words; of a bool, the words of false and true
//	path, exists  a path, from the folder of the file on, that has to be there
//	age           a duration that may be in days
//	url, tool ... a check of checks, or a reader of [decoder.special]
//
// A struct is a table. A slice of structs is one, too, if their first key is *, the key in it: of
// tables, or of values, which the key = has; else it is a list. The words of a table are of its
// keys, the second of its values. A struct is asked what does not fit together: see [checker].
type key struct {
	name, usual string
	words       []string
	restart     bool
	field       reflect.Value
}

// A checker reports what of a table that was read into it does not fit together.
type checker interface {
	check(d *decoder, n *tree.Node, path string)
}

// A reading struct has readers that no tag can name.
type reading interface {
	readers(d *decoder) map[string]reader
}

// checks are those of texts that a key names.
var checks = map[string]check{
	"approver":     checkApprover,
	"bundle":       matches(bundlePattern, "the name of a bundle: lower-case letters, digits and . _ -"),
	"console":      checkConsole,
	"digest":       matches(digestPattern, "64 hex digits in lower case"),
	"endpoint":     checkEndpoint,
	"exists":       exists,
	"group":        matches(groupPattern, "a group: lower-case letters, digits and -"),
	"guest":        guestPath,
	"header":       matches(headerPattern, "the name of a header"),
	"host":         matches(hostPattern, "a host, such as tools.example.com or tools.example.com:8443"),
	"hostport":     hostPort,
	"https":        secure,
	"identity":     identity,
	"link":         linkTarget,
	"local":        matches(localPattern, "the name of a tool as its server has it, or its beginning and *"),
	"mime":         matches(mimePattern, "a media type in lower case, such as text/html or text/*"),
	"moduleserver": checkModuleServer,
	"node":         matches(nodePattern, "a name of letters, digits and -, at most 64"),
	"origin":       matches(originPattern, "an origin in lower case without a path, such as https://app.example.com"),
	"pack":         checkPack,
	"pointer":      checkPointer,
	"prefix":       checkPrefix,
	"public":       checkPublicURL,
	"source": func(s string) error {
		_, err := apps.ParseSource(s)
		return err
	},
	"regexp":     compiles,
	"repository": matches(repositoryPattern, "registry/repository, such as ghcr.io/someone/tool"),
	"role":       matches(rolePattern, "a role: letters, digits and . _ -"),
	"scope":      matches(scopePattern, "a scope: one word"),
	"secretname": checkSecretName,
	"tool":       checkTools,
	"url":        checkURL,
	"web":        checkOrigin,
}

// special returns one of the readers that are of few keys, or nil.
func (d *decoder) special(word string, to any) reader {
	switch word {
	case "age":
		return d.age(to.(*time.Duration))
	case "health":
		return d.health(to.(*time.Duration))
	case "seconds":
		return d.seconds(to.(*time.Duration))
	case "ratio":
		return d.ratio(to.(*string))
	case "profile":
		return d.profile(to.(*string))
	case "program":
		return d.program(to.(*[]string))
	case "places":
		return d.places(to.(*[]string))
	case "args":
		return d.args(to.(*[]string))
	case "ports":
		return d.ports(to.(*[]uint16))
	case "listen":
		return d.listen(to.(*[]string))
	case "offered":
		return d.offered(to.(*[]string))
	case "methods":
		return d.methods(to.(*[]string))
	case "command":
		return d.command(to.(*string))
	case "apps":
		return d.apps(to.(**Apps))
	case "skills":
		return d.skills(to.(**Skills))
	case "login":
		return d.serverAuth(to.(**ServerAuth))
	case "existing":
		return d.places(to.(*[]string), exists)
	case "keyset":
		return d.keySet(to.(*string))
	case "roles":
		return d.mapping(to.(*Mapping), rolePattern)
	case "groups":
		return d.mapping(to.(*Mapping), groupPattern)
	case "addresses":
		return d.prefixes(to.(*[]netip.Prefix))
	}
	return nil
}

// keys returns those of a struct, in the order of its fields.
func keys(of reflect.Value) (all []key) {
	for f, v := range of.Fields() {
		tag, tagged := f.Tag.Lookup("key")
		if !tagged && f.Anonymous {
			all = append(all, keys(v)...)
		} else if tagged {
			words := strings.Fields(tag)
			all = append(all, key{words[0], f.Tag.Get("default"), words[1:], f.Tag.Get("restart") != "", v})
		}
	}
	return all
}

// object reads a table into the fields of the struct that to points to.
func (d *decoder) object(to any, n *tree.Node, path string) {
	readers := d.fields(to)
	if r, ok := to.(reading); ok {
		maps.Copy(readers, r.readers(d))
	}
	d.table(n, path, readers)
	if c, ok := to.(checker); ok {
		c.check(d, n, path)
	}
}

// fields returns the readers of a struct's keys.
func (d *decoder) fields(to any) map[string]reader {
	readers := make(map[string]reader)
	for _, k := range keys(reflect.ValueOf(to).Elem()) {
		readers[k.name] = d.reader(k)
	}
	return readers
}

// fill gives the fields of a struct their defaults.
func (d *decoder) fill(to any) {
	d = &decoder{dir: d.dir}
	for _, k := range keys(reflect.ValueOf(to).Elem()) {
		switch {
		case k.usual != "":
			d.reader(k)(usual(k), k.name)
		case k.field.Kind() == reflect.Struct:
			d.fill(k.field.Addr().Interface())
		}
	}
	if len(d.problems) > 0 {
		panic(d.problems) // a mistake in a tag
	}
}

// usual returns the default of a key as a file would have it.
func usual(k key) *tree.Node {
	switch k.field.Interface().(type) {
	case bool:
		if len(k.words) == 0 {
			return &tree.Node{Kind: tree.Boolean, Text: k.usual}
		}
	case int:
		return &tree.Node{Kind: tree.Number, Text: k.usual}
	case []string:
		n := &tree.Node{Kind: tree.List}
		for _, s := range strings.Fields(k.usual) {
			n.Items = append(n.Items, &tree.Node{Kind: tree.Text, Text: s})
		}
		return n
	}
	return &tree.Node{Kind: tree.Text, Text: k.usual}
}

// reader returns what reads the value of a key.
func (d *decoder) reader(k key) reader {
	word := strings.Join(k.words, " ")
	if read := d.special(word, k.field.Addr().Interface()); read != nil {
		return read
	}
	switch to := k.field.Addr().Interface().(type) {
	case *bool:
		if word != "" {
			return d.either(to, strings.Split(word, "|"))
		}
		return d.flag(to)
	case *int:
		low, high := bounds(word, strconv.Atoi)
		return d.count(to, low, high)
	case *int64:
		low, high := bounds(word, parseSize)
		return d.size(to, low, high)
	case *time.Duration:
		low, high := bounds(word, parseAge)
		return d.duration(to, low, high)
	case *string:
		return d.words(to, k.words)
	case *[]string:
		return d.texts(to, checksOf(k.words)...)
	case *slog.Level:
		return func(n *tree.Node, path string) {
			var s string
			if d.one(&s, strings.Split(word, "|")...)(n, path); s != "" {
				_ = to.UnmarshalText([]byte(s)) // its own words
			}
		}
	case *Secret:
		return d.secret(to)
	case *map[string]Secret:
		switch word {
		case "header":
			return d.secrets(to, checkHeader, checkHeaderValue)
		case "bundleheader":
			return d.secrets(to, checkBundleHeader, checkHeaderValue)
		case "config":
			return d.secrets(to, plain, nil)
		}
		return d.secrets(to, checkVariable, nil)
	}
	return d.tables(k)
}

// A named struct says what is wrong with the key of a table.
type named interface {
	named(d *decoder, f tree.Field, path string)
}

// tables reads a struct, a pointer to one, or several.
func (d *decoder) tables(k key) reader {
	return func(n *tree.Node, path string) {
		switch v := k.field; v.Kind() {
		case reflect.Struct:
			d.object(v.Addr().Interface(), n, path)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			d.fill(v.Interface())
			d.object(v.Interface(), n, path)
		case reflect.Slice:
			add := func(read func(one reflect.Value)) {
				one := reflect.New(v.Type().Elem())
				d.fill(one.Interface())
				read(one)
				v.Set(reflect.Append(v, one.Elem()))
			}
			if keys(reflect.Zero(v.Type().Elem()))[0].name == "*" {
				d.each(n, path, func(f tree.Field, path string) { add(func(one reflect.Value) { d.entry(one, k.words, f, path) }) })
			} else {
				d.items(n, path, func(n *tree.Node, path string) { add(func(one reflect.Value) { d.object(one.Interface(), n, path) }) })
			}
		}
	}
}

// entry reads one of a table: its key, which the first of words checks, and what stands there.
func (d *decoder) entry(one reflect.Value, words []string, f tree.Field, path string) {
	all := keys(one.Elem())
	all[0].field.SetString(f.Key)
	if to, ok := one.Interface().(named); ok {
		to.named(d, f, path)
	}
	for _, c := range checksOf(words[:min(1, len(words))]) {
		if err := c(f.Key); err != nil {
			d.fail(&tree.Node{Line: f.Line}, path, "%q %v", f.Key, err)
		}
	}
	if last := all[len(all)-1]; last.name == "=" {
		last.words = append(last.words, words[min(1, len(words)):]...)
		d.reader(last)(f.Value, path)
		return
	}
	d.object(one.Interface(), f.Value, path)
}

// words reads a text: one of some, a path, or what passes a check.
func (d *decoder) words(to *string, words []string) reader {
	switch {
	case len(words) > 0 && words[0] == "path":
		return d.path(to, checksOf(words[1:])...)
	case len(words) > 0 && strings.Contains(words[0], "|"):
		return d.one(to, strings.Split(words[0], "|")...)
	}
	return d.text(to, checksOf(words)...)
}

// checksOf returns the checks that a key names.
func checksOf(words []string) (all []check) {
	for _, w := range words {
		c := checks[w]
		switch {
		case strings.Contains(w, "|"):
			c = among(strings.Split(w, "|"))
		case c == nil:
			panic("config: there is no check " + w)
		}
		all = append(all, c)
	}
	return all
}

// either reads one of two words.
func (d *decoder) either(to *bool, words []string) reader {
	return func(n *tree.Node, path string) {
		var s string
		if d.one(&s, words...)(n, path); s != "" {
			*to = s == words[1]
		}
	}
}

// bounds returns the two values of low..high.
func bounds[T any](word string, parse func(string) (T, error)) (low, high T) {
	first, last, _ := strings.Cut(word, "..")
	low, err := parse(first)
	high, err2 := parse(last)
	if err := errors.Join(err, err2); err != nil {
		panic(fmt.Sprintf("config: the bounds %q: %v", word, err))
	}
	return low, high
}

// restarts appends the keys, below path, that need a restart and differ between two structs.
func restarts(old, new reflect.Value, path string) (names []string) {
	now := keys(new)
	for i, k := range keys(old) {
		switch {
		case k.restart && !reflect.DeepEqual(k.field.Interface(), now[i].field.Interface()):
			names = append(names, tree.Join(path, k.name))
		case !k.restart && whole(k.field).Kind() == reflect.Struct:
			names = append(names, restarts(whole(k.field), whole(now[i].field), tree.Join(path, k.name))...)
		}
	}
	return names
}

// whole returns what v points to, of nil the zero value; anything else as it is.
func whole(v reflect.Value) reflect.Value {
	switch {
	case v.Kind() != reflect.Pointer:
		return v
	case v.IsNil():
		return reflect.Zero(v.Type().Elem())
	}
	return v.Elem()
}

// values writes the keys of a struct that are not as they are by default.
func (l lines) values(of any) {
	v := reflect.ValueOf(of)
	without := reflect.New(v.Type())
	new(decoder).fill(without.Interface())
	plain := keys(without.Elem())
	for i, k := range keys(v) {
		if k.name != "*" && k.name != "=" && !reflect.DeepEqual(k.field.Interface(), plain[i].field.Interface()) {
			l.value(k)
		}
	}
}

// value writes a key.
func (l lines) value(k key) {
	switch v := k.field.Interface().(type) {
	case bool:
		word := strconv.FormatBool(v)
		if len(k.words) > 0 {
			word = strings.Split(k.words[0], "|")[map[bool]int{true: 1}[v]]
		}
		l.line(k.name, word)
	case int:
		l.number(k.name, v)
	case int64:
		l.size(k.name, v)
	case time.Duration:
		if v < 0 {
			l.line(k.name, scalar("off"))
		}
		l.time(k.name, max(v, 0))
	case string:
		l.text(k.name, v, "")
	case Secret:
		l.text(k.name, string(v), "")
	case []string:
		if slices.ContainsFunc(v, func(s string) bool { return len(s) > 20 || scalar(s) != s }) {
			l.column(k.name, v)
		} else {
			l.row(k.name, v)
		}
	case []uint16:
		l.line(k.name, "["+strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ", "), "[]")+"]")
	case map[string]Secret:
		l.block(k.name, v)
	case *Apps:
		l.switched(k.name, v.Mode, *v)
	case *Skills:
		l.switched(k.name, v.Mode, *v)
	default:
		l.under(k.name, func(l lines) { l.tables(k.field) })
	}
}

// switched writes what [decoder.switched] reads.
func (l lines) switched(key, mode string, all any) {
	if mode != "" {
		l.text(key, mode, "")
		return
	}
	l.under(key, func(l lines) { l.values(all) })
}

// tables writes what [decoder.tables] reads.
func (l lines) tables(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		l.values(v.Interface())
	case reflect.Pointer:
		l.values(v.Elem().Interface())
	case reflect.Slice:
		for i := range v.Len() {
			all := keys(v.Index(i))
			all[1].name = all[0].field.String()
			l.value(all[1])
		}
	}
}
