package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/itchyny/gojq"

	"github.com/wasmgate/wasmgate/sandbox/tools/tool"
)

// maxResults bounds what one query returns: more is of no use to a model.
const maxResults = 10_000

var jsonQuery = tool.Tool{
	Name:  "json_query",
	Title: "JSON query",
	Description: "Runs a jq program on a JSON document and returns all values that it yields. " +
		"Give exactly one of data (the document itself) and text (the document as a string). Example query: .items[] | select(.price > 10) | .name",
	InputSchema: []byte(`{"type":"object","properties":{
		"query":{"type":"string","minLength":1,"description":"The jq program."},
		"data":{"description":"The document, any JSON value."},
		"text":{"type":"string","description":"The document as JSON text."},
		"max_results":{"type":"integer","minimum":1,"maximum":10000,"default":100,"description":"Stop after this many values."}},
		"required":["query"],"additionalProperties":false}`),
	OutputSchema: []byte(`{"type":"object","properties":{
		"results":{"type":"array","description":"What the program yields, in order."},
		"truncated":{"type":"boolean","description":"True if the program would have yielded more than max_results."}},
		"required":["results","truncated"],"additionalProperties":false}`),
	Annotations: []byte(tool.ReadOnly),
	Run:         tool.Typed(runJSONQuery),
}

type jsonQueryIn struct {
	Query      string          `json:"query"`
	Data       json.RawMessage `json:"data"`
	Text       *string         `json:"text"`
	MaxResults *int            `json:"max_results"`
}

type jsonQueryOut struct {
	Results   []json.RawMessage `json:"results"`
	Truncated bool              `json:"truncated"`
}

func runJSONQuery(in jsonQueryIn) (jsonQueryOut, error) {
	limit, err := tool.Bounded("max_results", in.MaxResults, 100, 1, maxResults)
	if err != nil {
		return jsonQueryOut{}, err
	}
	doc, err := in.document()
	if err != nil {
		return jsonQueryOut{}, err
	}
	query, err := gojq.Parse(in.Query)
	if err != nil {
		return jsonQueryOut{}, fmt.Errorf("argument query: %w", err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return jsonQueryOut{}, fmt.Errorf("argument query: %w", err)
	}
	return collect(code.Run(doc), limit)
}

func collect(values gojq.Iter, limit int) (jsonQueryOut, error) {
	out := jsonQueryOut{Results: []json.RawMessage{}}
	for {
		v, ok := values.Next()
		if !ok {
			return out, nil
		}
		if err, ok := v.(error); ok {
			var halt *gojq.HaltError
			if errors.As(err, &halt) && halt.Value() == nil { // the program said `halt`
				return out, nil
			}
			return jsonQueryOut{}, fmt.Errorf("query: %w", err)
		}
		if len(out.Results) == limit {
			out.Truncated = true
			return out, nil
		}
		b, err := gojq.Marshal(v)
		if err != nil {
			return jsonQueryOut{}, fmt.Errorf("query: %w", err)
		}
		out.Results = append(out.Results, b)
	}
}

// document decodes the input with its numbers as written, so that large
// integers pass through unchanged.
func (in jsonQueryIn) document() (any, error) {
	name, text := "data", []byte(in.Data)
	switch {
	case in.Data != nil && in.Text != nil:
		return nil, errors.New("arguments data and text: give only one of them")
	case in.Text != nil:
		name, text = "text", []byte(*in.Text)
	case in.Data == nil:
		return nil, errors.New("arguments data and text: one of them is required")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return nil, fmt.Errorf("argument %s: %w", name, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("argument %s: more than one JSON value", name)
	}
	return doc, nil
}
