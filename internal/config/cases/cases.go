package cases

import (
	"path/filepath"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// Cases are calls of a module's tools with the expected results, and the substitutes that the module
// gets for the outside world.
type Cases struct {
	File   string
	Config map[string]string // that the module may know, as under tools.X.config
	Dirs   []config.DirGrant // each case gets copies of them
	Cases  []Case
}

// A Case is one call.
type Case struct {
	Name      string
	Line      int    // in the file
	Tool      string // "" is the only one of the module
	Arguments []byte // JSON; empty is {}
	Secrets   []config.BoundSecret
	HTTP      []CannedHTTP
	KV        map[string]string // values that are kept before the call
	Want      Want
}

// A CannedHTTP is a request that a tool is to make, and what it is answered.
type CannedHTTP struct {
	Line        int
	Method, URL string
	SentHeaders map[string]string // of the request, secrets filled in; others may be there
	SentBody    *string           // of the request; nil is any
	Status      int
	Headers     map[string]string
	Body        string
}

// Want is what is to come of a case. The zero Want is any result.
type Want struct {
	Result  []byte  // JSON; nil is any
	Error   *string // a tool error whose text has this in it
	Refused string  // the code of a refusal, such as refused_validate_input, or of a trap
}

// Read reads a file of cases. The error is a [tree.Problems] if it is none.
func Read(path string) (*Cases, error) {
	data, err := tree.Read(path)
	if err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f := &decode.File{Name: path, Dir: filepath.Dir(absolute), Lookup: func(string) (string, bool) { return "", false }}
	c := &Cases{File: path}
	var shared []config.BoundSecret
	if root, ok := f.Parse(data, false); ok {
		root.Table(map[string]decode.Reader{
			"config":  rawTexts(&c.Config),
			"secrets": secrets(&shared),
			"dirs":    dirs(&c.Dirs),
			"cases": func(v decode.Value) {
				for item := range v.List() {
					oneCase(&c.Cases, item)
				}
			},
		})
	}
	for i := range c.Cases {
		c.Cases[i].Secrets = append(c.Cases[i].Secrets, shared...) // the first of a name wins
	}
	if err := f.Problems.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

func oneCase(to *[]Case, v decode.Value) {
	c := Case{Line: v.Line}
	v.Table(map[string]decode.Reader{
		"name": raw(&c.Name), "tool": raw(&c.Tool), "arguments": asJSON(&c.Arguments), "secrets": secrets(&c.Secrets), "kv": rawTexts(&c.KV),
		"http": func(v decode.Value) {
			for item := range v.List() {
				canned(&c.HTTP, item)
			}
		},
		"want": c.Want.read,
	})
	v.Needs("name", "a name")
	for _, other := range *to {
		if c.Name != "" && other.Name == c.Name {
			v.Fail("has the same name as an earlier test case: choose another")
		}
	}
	*to = append(*to, c)
}

func (w *Want) read(v decode.Value) {
	v.Table(map[string]decode.Reader{"result": asJSON(&w.Result), "error": rawPointer(&w.Error), "refused": raw(&w.Refused)})
	if v.Kind == tree.Table && len(v.Fields) != 1 {
		v.Fail("names one of result, error and refused")
	}
}

func canned(to *[]CannedHTTP, v decode.Value) {
	h := CannedHTTP{Line: v.Line, Method: "GET", Status: 200}
	v.Table(map[string]decode.Reader{
		"method": decode.Literal(check.Method), "url": raw(&h.URL),
		"sent":   decode.Table(map[string]decode.Reader{"headers": rawTexts(&h.SentHeaders), "body": rawPointer(&h.SentBody)}),
		"status": decode.Count(&h.Status, 200, 599), "headers": rawTexts(&h.Headers), "body": raw(&h.Body),
	})
	v.Needs("url", "a url, that of the request which it answers")
	if v.Has("method") {
		h.Method = v.Get("method").Text
	}
	*to = append(*to, h)
}

func secrets(to *[]config.BoundSecret) decode.Reader {
	return func(v decode.Value) {
		for f := range v.Entries() {
			s, value := config.BoundSecret{Name: f.Key}, ""
			if err := check.SecretName(f.Key); err != nil {
				f.At.Fail("%q %v", f.Key, err)
			}
			f.Value.Table(map[string]decode.Reader{"value": raw(&value), "origin": decode.Literal(check.Origin)})
			f.Value.Needs("value", "a value, made up for the case")
			f.Value.Needs("origin", "an origin, the only one that it is sent to")
			s.Value, s.Origin = config.Secret(value), f.Value.Get("origin").Text
			*to = append(*to, s)
		}
	}
}

func dirs(to *[]config.DirGrant) decode.Reader {
	return func(v decode.Value) {
		for item := range v.List() {
			var g config.DirGrant
			item.Table(map[string]decode.Reader{"path": raw(&g.Path), "write": decode.Flag(&g.Write), "as": decode.Literal(check.GuestPath)})
			item.Needs("path", "a path, the folder that is granted")
			g.As = item.Get("as").Text
			if g.Path != "" {
				g.Path = item.Resolve(filepath.Clean(g.Path))
			}
			*to = append(*to, g)
		}
	}
}

// raw reads a text as it is written.
func raw(to *string) decode.Reader {
	return func(v decode.Value) {
		if v.Is(tree.Text) {
			*to = v.Text
		}
	}
}

// rawPointer is raw for a text that may be left out.
func rawPointer(to **string) decode.Reader {
	return func(v decode.Value) {
		*to = new(string)
		raw(*to)(v)
	}
}

func rawTexts(to *map[string]string) decode.Reader {
	return func(v decode.Value) {
		*to = make(map[string]string)
		for f := range v.Entries() {
			var s string
			raw(&s)(f.Value)
			(*to)[f.Key] = s
		}
	}
}

// asJSON reads any value as JSON.
func asJSON(to *[]byte) decode.Reader { return func(v decode.Value) { *to = v.JSON() } }
