package main

import (
	"context"
	"os"

	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app"
)

// documentsOf returns the documents that are kept beside a log, of those digests that are
// wanted; nil knows of none.
type documentsOf func(wanted map[string]bool) (map[string][]byte, error)

// documents returns what is kept beside the log in a file, if it is that of the
// configuration; else nil.
func (c *cli) documents(file string) documentsOf {
	cfg, err := c.open()
	if err != nil {
		return nil
	}
	is, err := os.Stat(file)
	of, cerr := os.Stat(cfg.Audit.Path)
	if err != nil || cerr != nil || !os.SameFile(is, of) {
		return nil
	}
	return func(wanted map[string]bool) (map[string][]byte, error) { return app.Documents(cfg, wanted) }
}

// filled returns what gives the records of a log the documents that they have digests of.
func (d documentsOf) filled(ctx context.Context, file string) (func(audit.Entry) audit.Entry, error) {
	if d == nil {
		return func(e audit.Entry) audit.Entry { return e }, nil
	}
	wanted := make(map[string]bool)
	for e, err := range audit.Read(ctx, file, audit.Filter{}) {
		if err != nil {
			return nil, err
		}
		if len(e.Arguments) == 0 {
			wanted[e.ArgsSHA256] = true
		}
		if len(e.Result) == 0 {
			wanted[e.ResultSHA256] = true
		}
	}
	delete(wanted, "")
	found, err := d(wanted)
	return func(e audit.Entry) audit.Entry {
		if len(e.Arguments) == 0 {
			e.Arguments = found[e.ArgsSHA256]
		}
		if len(e.Result) == 0 {
			e.Result = found[e.ResultSHA256]
		}
		return e
	}, err
}
