package gate

import "strings"

// A Result is the answer of a tool.
type Result struct {
	// Doc is the MCP result object.
	Doc Doc
	// IsError says that the tool ran and reports its own failure.
	IsError bool
	// InputRequired says that Doc is no outcome yet: it asks the client for more, which
	// has to call again. Only a call with Rounds is answered so.
	InputRequired bool
	// Labels are those that the call has added to its session. Do sets them.
	Labels Labels
	Usage  Usage
}

// Usage is what a call has used of its upstream. Zero fields are unknown.
type Usage struct {
	Fuel       uint64 // instructions of a sandboxed tool
	MemoryPeak int64  // bytes of a sandboxed tool
	Repeats    int    // how often the request was sent again
}

// Text returns the texts of a tool's result, a line break between two of them; ""
// if it has none.
func (r Result) Text() string {
	var b strings.Builder
	for block := range r.Doc.Get("content").Elements() {
		if block.Get("type").Text() != "text" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(block.Get("text").Text())
	}
	return b.String()
}
