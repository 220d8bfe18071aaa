// Command tool is a tool for wasmgate, compiled to WebAssembly: it counts the words of a text.
//
// A module that is a command reads one call as JSON from its standard input and writes the result as JSON to its
// standard output. tool.yaml describes it to agents. The sandbox gives it no files, no network and no clock.
package main

import (
	"encoding/json"
	"log"
	"os"
	"strings"
)

func main() {
	var call struct {
		Arguments struct{ Text string }
	}
	if err := json.NewDecoder(os.Stdin).Decode(&call); err != nil {
		log.Fatal(err) // standard error is part of the refusal
	}
	out := map[string]int{"words": len(strings.Fields(call.Arguments.Text))}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		log.Fatal(err)
	}
}
