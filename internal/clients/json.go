package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// JSON is a JSON file that is edited. What is not changed stays byte for byte.
type JSON struct {
	bom           bool
	root          hujson.Value
	newline, unit string // of the lines that are added
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// ParseJSON reads a file as its client does. The error says what the client does not take: it then
// ignores the whole file. An empty file is an empty object.
func (f Format) ParseJSON(data []byte) (*JSON, error) {
	j := &JSON{newline: "\n", unit: "  "}
	data, j.bom = bytes.CutPrefix(data, byteOrderMark)
	if j.bom && !f.BOM {
		return nil, errors.New("begins with a byte order mark, which the client does not take: remove it")
	}
	if bytes.Contains(data, []byte("\r\n")) {
		j.newline = "\r\n"
	}
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}" + j.newline)
	}
	var err error
	if j.root, err = hujson.Parse(bytes.Clone(data)); err != nil {
		return nil, fmt.Errorf("is not JSON that can be edited: %w", err)
	}
	root, ok := j.root.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("is not a JSON object")
	}
	for v := range j.root.All() {
		if line := commentLine(data, v); line > 0 && !f.Comments {
			return nil, fmt.Errorf("has a comment near line %d, which the client does not take: remove it", line)
		}
		if trailingComma(v.Value) && !f.Commas {
			return nil, fmt.Errorf("has a comma after a last member before line %d, which the client does not take: remove it", lineAt(data, v.EndOffset)+1)
		}
	}
	if len(root.Members) > 0 {
		before := string(root.Members[0].Name.BeforeExtra)
		if at := strings.LastIndexByte(before, '\n'); at >= 0 && strings.Trim(before[at+1:], " \t") == "" && before[at+1:] != "" {
			j.unit = before[at+1:]
		}
	}
	return j, nil
}

// Bytes returns the file.
func (j *JSON) Bytes() []byte {
	out := j.root.Pack()
	if j.bom {
		return append(bytes.Clone(byteOrderMark), out...)
	}
	return out
}

// Plain returns the file as JSON without comments.
func (j *JSON) Plain() []byte { return plain(j.root) }

func plain(v hujson.Value) []byte {
	v = v.Clone()
	v.Standardize()
	return bytes.TrimSpace(v.Pack())
}

// Append puts a value at the end of the list that the names lead to. What is missing on the way, or
// null, is made.
func (j *JSON) Append(value any, names ...string) error {
	at, depth := &j.root, 0
	for i, name := range names {
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			return fmt.Errorf("%s is not an object", strings.Join(names[:i], "."))
		}
		depth++
		next := member(o, name)
		var made hujson.ValueTrimmed = &hujson.Object{}
		if i == len(names)-1 {
			made = &hujson.Array{}
		}
		switch {
		case next == nil:
			next = j.addMember(o, name, made, depth)
		case next.Value.Kind() == 'n':
			next.Value = made
		}
		at = next
	}
	list, ok := at.Value.(*hujson.Array)
	if !ok {
		return fmt.Errorf("%s is not a list", strings.Join(names, "."))
	}
	element, err := j.value(value, depth+1, !j.inline(at.Value))
	if err != nil {
		return err
	}
	element.BeforeExtra = j.before(at.Value, depth+1)
	list.AfterExtra = j.closing(at.Value, list.AfterExtra, depth)
	if n := len(list.Elements); n > 0 {
		element.AfterExtra = list.Elements[n-1].AfterExtra // whether a comma follows
	}
	list.Elements = append(list.Elements, element)
	return nil
}

// Set puts a value at the member that the names lead to, in the place of what is there. What is missing on
// the way, or null, is made.
func (j *JSON) Set(value any, names ...string) error {
	at := &j.root
	for i, name := range names {
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			return fmt.Errorf("%s is not an object", strings.Join(names[:i], "."))
		}
		next := member(o, name)
		switch {
		case next == nil:
			next = j.addMember(o, name, &hujson.Object{}, i+1)
		case next.Value.Kind() == 'n':
			next.Value = &hujson.Object{}
		}
		at = next
	}
	made, err := j.value(value, len(names), true)
	if err != nil {
		return err
	}
	at.Value = made.Value
	return nil
}

// Delete takes out the member that the names lead to. Comments stay.
func (j *JSON) Delete(names ...string) {
	at := &j.root
	for i, name := range names {
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			return
		}
		if i == len(names)-1 {
			dropMember(o, name)
			if len(o.Members) == 0 {
				o.AfterExtra = emptied(o.AfterExtra)
			}
			return
		}
		if at = member(o, name); at == nil {
			return
		}
	}
}

// addMember returns the value of a new member, which is to get something.
func (j *JSON) addMember(o *hujson.Object, name string, value hujson.ValueTrimmed, depth int) *hujson.Value {
	m := hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: j.before(o, depth), Value: hujson.String(name)},
		Value: hujson.Value{Value: value},
	}
	if !j.inline(o) {
		m.Value.BeforeExtra = hujson.Extra(" ")
	}
	o.AfterExtra = j.closing(o, o.AfterExtra, depth-1)
	if n := len(o.Members); n > 0 {
		m.Value.AfterExtra = o.Members[n-1].Value.AfterExtra
	}
	o.Members = append(o.Members, m)
	return &o.Members[len(o.Members)-1].Value
}

// Remove takes the elements out of a list that drop chooses, and with the last of them the list and
// what else became empty by that. Comments stay.
func (j *JSON) Remove(drop func(plain []byte) bool, names ...string) {
	path := []*hujson.Object{}
	at := &j.root
	for _, name := range names {
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			return
		}
		path = append(path, o)
		if at = member(o, name); at == nil {
			return
		}
	}
	list, ok := at.Value.(*hujson.Array)
	if !ok || len(list.Elements) == 0 {
		return
	}
	var left []hujson.Value
	var comments hujson.Extra
	trailing := list.Elements[len(list.Elements)-1].AfterExtra
	for _, e := range list.Elements {
		if drop(plain(e)) {
			comments = append(comments, commentsOf(e.BeforeExtra)...)
			continue
		}
		e.BeforeExtra = append(comments, e.BeforeExtra...)
		comments = nil
		left = append(left, e)
	}
	if len(left) == len(list.Elements) {
		return
	}
	list.Elements = left
	list.AfterExtra = append(comments, list.AfterExtra...)
	if len(left) > 0 {
		left[len(left)-1].AfterExtra = trailing
		return
	}
	list.AfterExtra = emptied(list.AfterExtra)
	for i := len(names) - 1; i >= 0; i-- {
		o := path[i]
		value := member(o, names[i])
		if !vacant(value.Value) {
			return
		}
		dropMember(o, names[i])
		if len(o.Members) == 0 {
			o.AfterExtra = emptied(o.AfterExtra)
		}
	}
}

// vacant reports whether a list or an object has nothing in it, comments included.
func vacant(v hujson.ValueTrimmed) bool {
	switch v := v.(type) {
	case *hujson.Object:
		return len(v.Members) == 0 && len(commentsOf(v.AfterExtra)) == 0
	case *hujson.Array:
		return len(v.Elements) == 0 && len(commentsOf(v.AfterExtra)) == 0
	}
	return false
}

func dropMember(o *hujson.Object, name string) {
	for i := range o.Members {
		if o.Members[i].Name.Value.(hujson.Literal).String() != name {
			continue
		}
		comments := commentsOf(o.Members[i].Name.BeforeExtra)
		last := i == len(o.Members)-1
		trailing := o.Members[i].Value.AfterExtra
		o.Members = append(o.Members[:i], o.Members[i+1:]...)
		switch {
		case !last:
			o.Members[i].Name.BeforeExtra = append(comments, o.Members[i].Name.BeforeExtra...)
		case len(o.Members) > 0:
			o.Members[i-1].Value.AfterExtra = trailing
			o.AfterExtra = append(comments, o.AfterExtra...)
		default:
			o.AfterExtra = append(comments, o.AfterExtra...)
		}
		return
	}
}

func member(o *hujson.Object, name string) *hujson.Value {
	for i := range o.Members {
		if o.Members[i].Name.Value.(hujson.Literal).String() == name {
			return &o.Members[i].Value
		}
	}
	return nil
}

// inline reports whether an object or a list is written in one line.
func (j *JSON) inline(v hujson.ValueTrimmed) bool {
	first, after := hujson.Extra(nil), hujson.Extra(nil)
	switch v := v.(type) {
	case *hujson.Object:
		if len(v.Members) == 0 {
			return false
		}
		first, after = v.Members[0].Name.BeforeExtra, v.AfterExtra
	case *hujson.Array:
		if len(v.Elements) == 0 {
			return false
		}
		first, after = v.Elements[0].BeforeExtra, v.AfterExtra
	}
	return !bytes.ContainsRune(first, '\n') && !bytes.ContainsRune(after, '\n')
}

// before is the space before what is added to an object or a list.
func (j *JSON) before(v hujson.ValueTrimmed, depth int) hujson.Extra {
	if j.inline(v) {
		return hujson.Extra(" ")
	}
	return hujson.Extra(j.newline + strings.Repeat(j.unit, depth))
}

// closing is the space before the bracket that closes what something is added to.
func (j *JSON) closing(v hujson.ValueTrimmed, now hujson.Extra, depth int) hujson.Extra {
	if j.inline(v) || bytes.ContainsRune(now, '\n') {
		return now
	}
	return append(now, j.newline+strings.Repeat(j.unit, depth)...)
}

// value returns a value as it is written at a depth.
func (j *JSON) value(value any, depth int, lines bool) (hujson.Value, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if lines {
		enc.SetIndent(strings.Repeat(j.unit, depth), j.unit)
	}
	if err := enc.Encode(value); err != nil {
		return hujson.Value{}, err
	}
	text := bytes.ReplaceAll(bytes.TrimSpace(out.Bytes()), []byte("\n"), []byte(j.newline))
	return hujson.Parse(text)
}

// commentsOf returns the comments in the space around values, each with its line; nil if there are none.
func commentsOf(e hujson.Extra) hujson.Extra {
	if !bytes.ContainsRune(e, '/') {
		return nil
	}
	return bytes.Clone(e)
}

// emptied is the space that stays in what is empty now.
func emptied(e hujson.Extra) hujson.Extra {
	if commentsOf(e) == nil {
		return nil
	}
	return e
}

// commentLine returns the line of the first comment around or at the end of a value; 0 if there is none.
func commentLine(data []byte, v *hujson.Value) int {
	if commentsOf(v.BeforeExtra) != nil || commentsOf(v.AfterExtra) != nil {
		return lineAt(data, v.StartOffset)
	}
	var inside hujson.Extra
	switch c := v.Value.(type) {
	case *hujson.Object:
		inside = c.AfterExtra
	case *hujson.Array:
		inside = c.AfterExtra
	}
	if commentsOf(inside) != nil {
		return lineAt(data, v.EndOffset)
	}
	return 0
}

func lineAt(data []byte, offset int) int {
	return bytes.Count(data[:min(offset, len(data))], []byte("\n")) + 1
}

// trailingComma reports whether a comma follows the last member.
func trailingComma(v hujson.ValueTrimmed) bool {
	switch v := v.(type) {
	case *hujson.Object:
		return len(v.Members) > 0 && v.Members[len(v.Members)-1].Value.AfterExtra != nil
	case *hujson.Array:
		return len(v.Elements) > 0 && v.Elements[len(v.Elements)-1].AfterExtra != nil
	}
	return false
}
