package decode

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// A Key of a file is declared once, at the field that holds its value:
//
//	Timeout time.Duration `key:"timeout 1ms..24h" default:"30s" restart:"yes"`
//
// What follows the name says which values are taken; with the type of the field it gives the
// reader, the default ([File.Fill]), and whether a change waits for a restart ([Restarts]):
//
//	1..64         bounds of a number, a size or a duration; durations and sizes with their units
//	on|off        one of the words; of a bool, the words of false and true
//	path          a path, from the folder of the file on
//	url, tool ... a check or a reader of [Words]
//
// A struct is a table. A slice of structs is one, too, if their first key is *, the key in it: of
// tables, or of values, which the key = has; else it is a list. The words of a table are of its
// keys, the second of its values. A struct is asked what does not fit together: see [Checker].
type Key struct {
	Name, Usual string
	Words       []string
	Restart     bool
	Field       reflect.Value
}

// Words are what tags say besides bounds, choices and paths: the checks of texts, and the readers of
// few keys. Each takes the address of the field, and returns nil for a field of another type.
// With nil there are none.
type Words struct {
	Checks  map[string]Check
	Readers map[string]func(to any) Reader
}

// For returns a reader of [Words] for fields of type T.
func For[T any](read func(to *T) Reader) func(to any) Reader {
	return func(to any) Reader {
		if one, ok := to.(*T); ok {
			return read(one)
		}
		return nil
	}
}

// A Checker reports which keys of a table that was read into it do not fit together.
type Checker interface{ Check(v Value) }

// A Reading struct has readers that no tag can name.
type Reading interface{ Readers() map[string]Reader }

// A Named struct says what is wrong with the key of a table.
type Named interface{ Named(f Field) }

// Keys returns those of a struct, in the order of its fields.
func Keys(of reflect.Value) (all []Key) {
	for f, v := range of.Fields() {
		tag, tagged := f.Tag.Lookup("key")
		if !tagged && f.Anonymous {
			all = append(all, Keys(v)...)
		} else if tagged {
			words := strings.Fields(tag)
			all = append(all, Key{words[0], f.Tag.Get("default"), words[1:], f.Tag.Get("restart") != "", v})
		}
	}
	return all
}

// Object reads a table into the fields of the struct that to points to.
func (v Value) Object(to any) {
	readers := v.file.Words.Fields(to)
	if r, ok := to.(Reading); ok {
		maps.Copy(readers, r.Readers())
	}
	v.Table(readers)
	if c, ok := to.(Checker); ok {
		c.Check(v)
	}
}

// Fields returns the readers of a struct's keys. It panics if a tag has a word that is not known.
func (w *Words) Fields(to any) map[string]Reader {
	readers := make(map[string]Reader)
	for _, k := range Keys(reflect.ValueOf(to).Elem()) {
		readers[k.Name] = w.reader(k)
	}
	return readers
}

// Fill gives the fields of a struct their defaults.
func (f *File) Fill(to any) {
	of := &File{Dir: f.Dir, Words: f.Words}
	for _, k := range Keys(reflect.ValueOf(to).Elem()) {
		switch {
		case k.Usual != "":
			of.Words.reader(k)(of.Value(usual(k), k.Name))
		case k.Field.Kind() == reflect.Struct:
			of.Fill(k.Field.Addr().Interface())
		}
	}
	if len(of.Problems) > 0 {
		panic(of.Problems) // a mistake in a tag
	}
}

// usual returns the default of a key as a file would have it.
func usual(k Key) *tree.Node {
	switch k.Field.Interface().(type) {
	case bool:
		if len(k.Words) == 0 {
			return &tree.Node{Kind: tree.Boolean, Text: k.Usual}
		}
	case int:
		return &tree.Node{Kind: tree.Number, Text: k.Usual}
	case []string:
		n := &tree.Node{Kind: tree.List}
		for _, s := range strings.Fields(k.Usual) {
			n.Items = append(n.Items, &tree.Node{Kind: tree.Text, Text: s})
		}
		return n
	}
	return &tree.Node{Kind: tree.Text, Text: k.Usual}
}

// reader returns what reads the value of a key.
func (w *Words) reader(k Key) Reader {
	word := strings.Join(k.Words, " ")
	if read := w.special(word, k.Field.Addr().Interface()); read != nil {
		return read
	}
	switch to := k.Field.Addr().Interface().(type) {
	case *bool:
		if word != "" {
			return Either(to, strings.Split(word, "|"))
		}
		return Flag(to)
	case *int:
		low, high := bounds(word, strconv.Atoi)
		return Count(to, low, high)
	case *int64:
		low, high := bounds(word, parseSize)
		return Size(to, low, high)
	case *time.Duration:
		low, high := bounds(word, ParseAge)
		return Duration(to, low, high)
	case *string:
		return w.text(to, k.Words)
	case *[]string:
		return Texts(to, w.checks(k.Words)...)
	case *slog.Level:
		return func(v Value) {
			var s string
			if One(&s, strings.Split(word, "|")...)(v); s != "" {
				_ = to.UnmarshalText([]byte(s)) // its own words
			}
		}
	case *Secret:
		return secret(to)
	case *map[string]Secret:
		return Secrets(to, check.Variable, nil)
	}
	return w.tables(k)
}

// special returns the reader that a word names, or nil.
func (w *Words) special(word string, to any) Reader {
	if w == nil || w.Readers[word] == nil {
		return nil
	}
	return w.Readers[word](to)
}

// tables reads a struct, a pointer to one, or several.
func (w *Words) tables(k Key) Reader {
	return func(v Value) {
		switch to := k.Field; to.Kind() {
		case reflect.Struct:
			v.Object(to.Addr().Interface())
		case reflect.Pointer:
			to.Set(reflect.New(to.Type().Elem()))
			v.file.Fill(to.Interface())
			v.Object(to.Interface())
		case reflect.Slice:
			add := func(read func(one reflect.Value)) {
				one := reflect.New(to.Type().Elem())
				v.file.Fill(one.Interface())
				read(one)
				to.Set(reflect.Append(to, one.Elem()))
			}
			if Keys(reflect.Zero(to.Type().Elem()))[0].Name == "*" {
				for f := range v.Entries() {
					add(func(one reflect.Value) { w.entry(one, k.Words, f) })
				}
				return
			}
			for item := range v.List() {
				add(func(one reflect.Value) { item.Object(one.Interface()) })
			}
		}
	}
}

// entry reads one of a table: its key, which the first of words checks, and what stands there.
func (w *Words) entry(one reflect.Value, words []string, f Field) {
	all := Keys(one.Elem())
	all[0].Field.SetString(f.Key)
	if to, ok := one.Interface().(Named); ok {
		to.Named(f)
	}
	for _, c := range w.checks(words[:min(1, len(words))]) {
		if err := c(f.Key); err != nil {
			f.At.Fail("%q %v", f.Key, err)
		}
	}
	if last := all[len(all)-1]; last.Name == "=" {
		last.Words = append(last.Words, words[min(1, len(words)):]...)
		w.reader(last)(f.Value)
		return
	}
	f.Value.Object(one.Interface())
}

// text reads a text: one of some, a path, or what passes a check.
func (w *Words) text(to *string, words []string) Reader {
	switch {
	case len(words) > 0 && words[0] == "path":
		return Path(to, w.checks(words[1:])...)
	case len(words) > 0 && strings.Contains(words[0], "|"):
		return One(to, strings.Split(words[0], "|")...)
	}
	return Text(to, w.checks(words)...)
}

// checks returns the checks that words name.
func (w *Words) checks(words []string) (all []Check) {
	for _, word := range words {
		if strings.Contains(word, "|") {
			all = append(all, check.Among(strings.Split(word, "|")))
		} else if c := w.Checks[word]; c != nil {
			all = append(all, c)
		} else {
			panic("config: there is no check " + word)
		}
	}
	return all
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

// Restarts returns the keys that need a restart and differ between two structs of one type.
func Restarts(old, next any) []string {
	return restarts(reflect.ValueOf(old), reflect.ValueOf(next), "")
}

func restarts(old, next reflect.Value, path string) (names []string) {
	now := Keys(next)
	for i, k := range Keys(old) {
		switch {
		case k.Restart && !reflect.DeepEqual(k.Field.Interface(), now[i].Field.Interface()):
			names = append(names, tree.Join(path, k.Name))
		case !k.Restart && whole(k.Field).Kind() == reflect.Struct:
			names = append(names, restarts(whole(k.Field), whole(now[i].Field), tree.Join(path, k.Name))...)
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
