package approval

import (
	"bytes"
	"encoding/json"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// encoded is a [Kept] as JSON. The owners of sessions have a field of their own, because that of a
// session's ID hides them.
type encoded struct {
	Kept   Kept
	Owners []owners
}

// owners are those of a question's sessions.
type owners struct{ Call, Connection, Session gate.Owner }

// Encode returns the request for a store outside of the process. What is not kept of it no one asks for
// later: the schemas, app and page of the tool, and destinations approved before.
func (k Kept) Encode() ([]byte, error) {
	e := encoded{Kept: k}
	e.Kept.Question = e.portable(k.Question)
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false) // arguments keep their spelling
	err := w.Encode(e)
	return b.Bytes(), err
}

func (e *encoded) portable(q gate.Question) gate.Question {
	c, tool := *q.Call, *q.Tool
	e.Owners = append(e.Owners, owners{c.Session.Owner, c.Connection.Owner, q.Session.Key.Owner})
	c.Client, c.Refused = nil, nil
	tool.Input, tool.Output, tool.App, tool.Page = nil, nil, nil, nil
	q.Call, q.Tool, q.Session.Destinations, q.Session.Values = &c, &tool, nil, provenance.Provenance{}
	set := q.Set
	q.Set = nil
	for _, one := range set {
		q.Set = append(q.Set, e.portable(one))
	}
	return q
}

// Decode returns what Encode has encoded.
func Decode(raw []byte) (Kept, error) {
	var e encoded
	if err := json.Unmarshal(raw, &e); err != nil {
		return Kept{}, err
	}
	e.restore(&e.Kept.Question)
	return e.Kept, nil
}

func (e *encoded) restore(q *gate.Question) {
	if len(e.Owners) > 0 {
		of := e.Owners[0]
		e.Owners = e.Owners[1:]
		q.Call.Session.Owner, q.Call.Connection.Owner, q.Session.Key.Owner = of.Call, of.Connection, of.Session
	}
	docs := []*gate.Doc{
		&q.Call.Args, &q.Call.Meta, &q.Call.Brought.Responses, &q.Tool.Definition, &q.Tool.Annotations, &q.Tool.Capabilities, &q.Tool.Origin,
	}
	if q.Call.Who != nil {
		docs = append(docs, &q.Call.Who.Claims)
	}
	if q.Tool.Skill != nil {
		docs = append(docs, &q.Tool.Skill.Entry)
	}
	for _, d := range docs {
		if string(d.Raw()) == "null" { // which an absent document is in JSON
			*d = gate.Doc{}
		}
	}
	for i := range q.Set {
		e.restore(&q.Set[i])
	}
}
