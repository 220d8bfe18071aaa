package background

import (
	"context"
	"path/filepath"
	"slices"
	"sync"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/background/documents"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/match"
)

// keptDocuments are where arguments and results of some tools are kept.
type keptDocuments struct {
	*documents.Store
	tools []string
}

func (k *keptDocuments) of(r *gate.Record) bool {
	return r.Tool != nil && r.Call.Action == gate.CallTool &&
		slices.ContainsFunc(k.tools, func(p string) bool { return match.Pattern(p).Matches(r.Tool.Name.String()) })
}

// openDocuments opens the store of arguments and results that belongs to a configuration's audit log.
func openDocuments(cfg *config.Config, failed func(error)) (*documents.Store, error) {
	secret, err := state.Secret(cfg.State)
	if err != nil {
		return nil, err
	}
	return documents.New(filepath.Join(filepath.Dir(cfg.Audit.Path), "arguments"), secret, failed)
}

// WithDocuments has an audit log keep documents where the configuration in use says.
func (b *Work) WithDocuments(o audit.Options) audit.Options {
	o.Beside = func(r *gate.Record) bool { k := b.documents.Load(); return k != nil && k.of(r) }
	o.Documents = func(digest string, text []byte) {
		if k := b.documents.Load(); k != nil {
			k.Keep(digest, text)
		}
	}
	return o
}

// keepDocuments keeps documents until ctx ends.
func (b *Work) keepDocuments(ctx context.Context, all *sync.WaitGroup, cfg *config.Config) {
	if len(cfg.Audit.Arguments.Tools) == 0 {
		b.documents.Store(nil)
		return
	}
	failed := func(err error) { b.problem("audit.arguments", err) }
	store, err := openDocuments(b.first, failed)
	if err != nil {
		failed(err)
		return
	}
	b.documents.Store(&keptDocuments{store, cfg.Audit.Arguments.Tools})
	all.Go(func() {
		store.Run(ctx, cfg.Audit.Arguments.Keep)
		b.documents.Store(nil)
	})
}

// Documents returns the kept arguments and results that have one of the wanted digests. They belong to
// the audit log of a configuration. Most limits them to so many bytes in all; 0 is no limit.
func Documents(cfg *config.Config, wanted map[string]bool, most int64) (map[string][]byte, error) {
	store, err := openDocuments(cfg, func(error) {})
	if err != nil {
		return nil, err
	}
	return store.Read(wanted, most)
}
