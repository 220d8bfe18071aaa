package config

import (
	"bytes"
	"path/filepath"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// Cases are calls of a module's tools with what is to come of them, and what the module
// has meanwhile in the place of the world.
type Cases struct {
	File   string
	Config map[string]string // that the module may know, as under tools.X.config
	Dirs   []DirGrant        // of which each case has copies
	Cases  []Case
}

// A Case is one call.
type Case struct {
	Name      string
	Line      int    // in the file
	Tool      string // "" is the only one of the module
	Arguments []byte // JSON; empty is {}
	Secrets   []BoundSecret
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

// ReadCases reads a file of cases. The error is a [Problems] if it is none.
func ReadCases(path string) (*Cases, error) {
	data, err := tree.Read(path)
	if err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	d := &decoder{file: path, dir: filepath.Dir(absolute), lookup: func(string) (string, bool) { return "", false }}
	c := &Cases{File: path}
	var shared []BoundSecret
	if root := d.parse(data, false); root != nil {
		d.table(root, "", map[string]reader{
			"config":  d.rawTexts(&c.Config),
			"secrets": d.caseSecrets(&shared),
			"dirs":    d.caseDirs(&c.Dirs),
			"cases": func(n *tree.Node, path string) {
				d.items(n, path, func(n *tree.Node, path string) { d.oneCase(&c.Cases, n, path) })
			},
		})
	}
	for i := range c.Cases {
		c.Cases[i].Secrets = append(c.Cases[i].Secrets, shared...) // the first of a name stands
	}
	if err := d.problems.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

func (d *decoder) oneCase(to *[]Case, n *tree.Node, path string) {
	c := Case{Line: n.Line}
	d.table(n, path, map[string]reader{
		"name": d.raw(&c.Name), "tool": d.raw(&c.Tool), "arguments": d.asJSON(&c.Arguments),
		"secrets": d.caseSecrets(&c.Secrets), "kv": d.rawTexts(&c.KV),
		"http": func(n *tree.Node, path string) {
			d.items(n, path, func(n *tree.Node, path string) { d.canned(&c.HTTP, n, path) })
		},
		"want": func(n *tree.Node, path string) { d.want(&c.Want, n, path) },
	})
	d.needs(n, path, "name", "a name")
	for _, other := range *to {
		if c.Name != "" && other.Name == c.Name {
			d.fail(n, path, "has the same name as an earlier test case: choose another")
		}
	}
	*to = append(*to, c)
}

func (d *decoder) want(to *Want, n *tree.Node, path string) {
	var text string
	d.table(n, path, map[string]reader{
		"result": d.asJSON(&to.Result),
		"error": func(n *tree.Node, path string) {
			d.raw(&text)(n, path)
			to.Error = &text
		},
		"refused": d.raw(&to.Refused),
	})
	if n.Kind == tree.Table && len(n.Fields) != 1 {
		d.fail(n, path, "names one of result, error and refused")
	}
}

func (d *decoder) canned(to *[]CannedHTTP, n *tree.Node, path string) {
	h := CannedHTTP{Line: n.Line, Method: "GET", Status: 200}
	var sent string
	d.table(n, path, map[string]reader{
		"method": d.literal(checkMethod), "url": d.raw(&h.URL),
		"sent": func(n *tree.Node, path string) {
			d.table(n, path, map[string]reader{"headers": d.rawTexts(&h.SentHeaders), "body": func(n *tree.Node, path string) {
				d.raw(&sent)(n, path)
				h.SentBody = &sent
			}})
		},
		"status": d.count(&h.Status, 200, 599), "headers": d.rawTexts(&h.Headers), "body": d.raw(&h.Body),
	})
	d.needs(n, path, "url", "a url, that of the request which it answers")
	if m := n.Get("method"); m != nil {
		h.Method = m.Text
	}
	*to = append(*to, h)
}

func (d *decoder) caseSecrets(to *[]BoundSecret) reader {
	return func(n *tree.Node, path string) {
		d.each(n, path, func(f tree.Field, path string) {
			s, value := BoundSecret{Name: f.Key}, ""
			if err := checkSecretName(f.Key); err != nil {
				d.fail(&tree.Node{Line: f.Line}, path, "%q %v", f.Key, err)
			}
			d.table(f.Value, path, map[string]reader{"value": d.raw(&value), "origin": d.literal(checkOrigin)})
			d.needs(f.Value, path, "value", "a value, made up for the case")
			d.needs(f.Value, path, "origin", "an origin, the only one that it is sent to")
			if origin := f.Value.Get("origin"); origin != nil {
				s.Origin = origin.Text
			}
			s.Value = Secret(value)
			*to = append(*to, s)
		})
	}
}

func (d *decoder) caseDirs(to *[]DirGrant) reader {
	return func(n *tree.Node, path string) {
		d.items(n, path, func(n *tree.Node, path string) {
			var g DirGrant
			d.table(n, path, map[string]reader{"path": d.raw(&g.Path), "write": d.flag(&g.Write), "as": d.literal(guestPath)})
			d.needs(n, path, "path", "a path, the folder that is granted")
			if as := n.Get("as"); as != nil {
				g.As = as.Text
			}
			if g.Path != "" {
				g.Path = d.resolve(filepath.Clean(g.Path))
			}
			*to = append(*to, g)
		})
	}
}

// raw reads a text as it is written.
func (d *decoder) raw(to *string) reader {
	return func(n *tree.Node, path string) {
		if d.is(n, path, tree.Text) {
			*to = n.Text
		}
	}
}

func (d *decoder) rawTexts(to *map[string]string) reader {
	return func(n *tree.Node, path string) {
		*to = make(map[string]string)
		d.each(n, path, func(f tree.Field, path string) {
			var s string
			d.raw(&s)(f.Value, path)
			(*to)[f.Key] = s
		})
	}
}

// asJSON reads any value as JSON.
func (d *decoder) asJSON(to *[]byte) reader {
	return func(n *tree.Node, path string) {
		var b bytes.Buffer
		d.json(&b, n, path)
		*to = b.Bytes()
	}
}
