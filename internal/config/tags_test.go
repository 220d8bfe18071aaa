package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"
)

// TestEveryKeyIsDocumented: each key that a file may have is shown somewhere in docs. It also
// reads every tag, of parts that no file of a test has, too.
func TestEveryKeyIsDocumented(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	var docs []byte
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, text...)
	}
	names := keyNames(reflect.TypeFor[Config](), reflect.TypeFor[Server](), reflect.TypeFor[Module](), reflect.TypeFor[BoundSecret](), reflect.TypeFor[ServerAuth](), reflect.TypeFor[RateLimit](), reflect.TypeFor[ToolLabel]())
	if len(names) < 150 {
		t.Errorf("only %d keys were found: %v", len(names), names)
	}
	for _, name := range names {
		if !regexp.MustCompile(`\b` + name + "(:|`)").Match(docs) {
			t.Errorf("no page of docs shows the key %s", name)
		}
	}
}

// keyNames returns the keys of types, and of those in them.
func keyNames(types ...reflect.Type) (names []string) {
	for _, of := range types {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct {
			continue
		}
		one := reflect.New(of)
		(&decoder{}).fields(one.Interface())
		for _, k := range keys(one.Elem()) {
			if k.name != "*" && k.name != "=" {
				names = append(names, k.name)
			}
			names = append(names, keyNames(k.field.Type())...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
