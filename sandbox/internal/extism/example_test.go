package extism_test

import (
	"fmt"

	"github.com/wasmgate/wasmgate/sandbox/internal/extism"
)

// A plug-in of hyper-mcp's version 2 is asked for a tool, and answers.
func Example() {
	exports := map[string]bool{"call_tool": true, "list_tools": true}
	version, _ := extism.Detect(func(name string) bool { return exports[name] })
	in, err := extism.Request(version, "time", []byte(`{"zone":"UTC"}`))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s <- %s\n", version.Call(), in)

	res, err := extism.ParseResult(version, []byte(`{"content":[{"type":"text","text":"noon","annotations":null}]}`))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", res.Content[0]["text"])
	// Output:
	// call_tool <- {"request":{"name":"time","arguments":{"zone":"UTC"}},"context":{"id":1,"_meta":{}}}
	// "noon"
}
