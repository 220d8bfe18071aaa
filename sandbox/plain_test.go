package sandbox_test

import (
	"context"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox"
)

// plain is an Extism plug-in without any convention of tools, whose functions echo and same
// answer with their input.
func plain() []byte {
	section := func(id byte, content string) string { return string([]byte{id, byte(len(content))}) + content }
	name := func(s string) string { return string([]byte{byte(len(s))}) + s }
	const env = "extism:host/env"
	body := "\x00\x10\x00\x10\x01\x10\x02\x41\x00\x0b" // output_set(input_offset(), input_length()); 0
	return []byte("\x00asm\x01\x00\x00\x00" +
		section(1, "\x03\x60\x00\x01\x7e\x60\x02\x7e\x7e\x00\x60\x00\x01\x7f") +
		section(2, "\x03"+name(env)+name("input_offset")+"\x00\x00"+name(env)+name("input_length")+"\x00\x00"+name(env)+name("output_set")+"\x00\x01") +
		section(3, "\x01\x02") + section(5, "\x01\x00\x01") +
		section(7, "\x03"+name("memory")+"\x02\x00"+name("echo")+"\x00\x03"+name("same")+"\x00\x03") +
		section(10, "\x01"+name(body)))
}

// The functions of a plain plug-in are its tools, from a text to a text; with a manifest
// they are what it says.
func TestPlainPlugin(t *testing.T) {
	r, err := sandbox.New(t.Context(), sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	object := []byte(`{"type":"object"}`)
	for name, tt := range map[string]struct {
		manifest  *sandbox.Manifest
		tool      string
		args      string
		want, err string
	}{
		"without a manifest":           {nil, "echo", `{"input":"a \"b\""}`, `{"content":[{"text":"a \"b\"","type":"text"}]}`, ""},
		"another function":             {nil, "same", `{"input":""}`, `{"content":[{"text":"","type":"text"}]}`, ""},
		"arguments as JSON":            {&sandbox.Manifest{Tools: []sandbox.Tool{{Name: "echo", InputSchema: object}}}, "echo", `{"a":1}`, `{"content":[{"text":"{\"a\":1}","type":"text"}]}`, ""},
		"an answer in JSON":            {&sandbox.Manifest{Tools: []sandbox.Tool{{Name: "echo", InputSchema: object, OutputSchema: object}}}, "echo", `{"a":1}`, `{"a":1}`, ""},
		"a function that there is not": {&sandbox.Manifest{Tools: []sandbox.Tool{{Name: "other", InputSchema: object}}}, "", "", "", `there are: echo, same`},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := r.Compile(t.Context(), plain(), sandbox.ModuleConfig{Manifest: tt.manifest})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				res, err := m.Call(t.Context(), tt.tool, []byte(tt.args), sandbox.CallConfig{})
				if err != nil || string(res.Output) != tt.want {
					t.Errorf("%s, %v; want %s", res.Output, err, tt.want)
				}
			}
		})
	}
}
