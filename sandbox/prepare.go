package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"github.com/wasmgate/wasmgate/sandbox/internal/compiler"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// A preparer makes of modules what the engine compiles, and has the cache keep it.
type preparer struct {
	cache *compiler.Cache
	host  functions
}

// prepared is what the cache keeps of a module in addition to its machine code: all that a runtime
// has to know of it, so that a module which was compiled once is neither read nor rewritten again.
type prepared struct {
	Imports   []rewrite.Import
	Manifest  []byte // that it carries; nil for none
	MinMemory int64
	Go        bool
	Sealed    *rewrite.Sealed // without its code; nil if the module cannot be sealed
	Unfit     string          // why it cannot

	code compiler.Code
	wasm []byte          // as it is compiled; nil if the cache has its code
	read *rewrite.Module // likewise
}

// An origin is where a module comes from: what it is known by, and how to get its bytes.
type origin struct {
	key  compiler.Key
	wasm func() ([]byte, error)
}

func bytesOf(wasm []byte) origin {
	return origin{keyOf(wasm), func() ([]byte, error) { return wasm, nil }}
}

// keyOf is by what the cache knows what this program makes of something.
func keyOf(b []byte) (key compiler.Key) {
	h := sha256.New()
	h.Write(program())
	h.Write(b)
	h.Sum(key[:0])
	return key
}

// program tells this program from others, and from itself before it was built again.
var program = sync.OnceValue(func() []byte {
	var b []byte
	if info, ok := debug.ReadBuildInfo(); ok {
		b = append(b, info.String()...)
	}
	file, err := os.Executable()
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(file); err == nil {
			b = fmt.Appendf(b, "%q %d %d", file, info.Size(), info.ModTime().UnixNano())
		}
	}
	if err != nil { // then nothing is found that another process has left
		b = append(b, rand.Text()...)
	}
	sum := sha256.Sum256(b)
	return sum[:]
})

// look returns what the cache keeps of a module, or what the module declares.
func (r *preparer) look(from origin) (*prepared, error) {
	if code, ok := r.cache.Look(from.key); ok {
		p := &prepared{code: code}
		if err := gob.NewDecoder(bytes.NewReader(code.Kept)).Decode(p); err == nil {
			return p, nil
		}
	}
	wasm, err := from.wasm()
	if err != nil {
		return nil, err
	}
	m, err := rewrite.Decode(wasm)
	if err != nil {
		return nil, err
	}
	return &prepared{Imports: m.Imports, Manifest: m.Manifest, MinMemory: m.MinMemory, Go: m.Go, read: m}, nil
}

// rewrite gives the module the form that is compiled: sealed, if it can be. It has nothing to do if
// the cache has its code. The manifest says whether a module may have stubs for functions that do
// not exist here, and whether its calls begin where it waits for its input. With the same answers
// the form is always the same.
func (r *preparer) rewrite(p *prepared) (err error) {
	if p.read == nil {
		return nil
	}
	p.read.Stub(r.host.missing, ofWASI)
	p.read.Rewind(readsInput, exits)
	sealed, err := p.read.Seal()
	var unfit *rewrite.UnfitError
	switch {
	case err == nil:
		p.wasm = sealed.WASM
		p.Sealed, sealed.WASM = sealed, nil
	case errors.As(err, &unfit):
		p.Unfit = unfit.Reason
		p.wasm, err = p.read.Meter()
	}
	if err == nil && !compiler.Apart() {
		err = p.read.Cost().Within(withoutChild)
	}
	return err
}

// withoutChild is the part of the bounds that a module may take where nothing can end the
// compiler.
const withoutChild = 4

// fill has the cache hold the code of a module that was rewritten.
func (r *preparer) fill(ctx context.Context, from origin, p *prepared) error {
	if p.wasm == nil {
		return nil
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(p); err != nil {
		return err
	}
	code, err := r.cache.Fill(ctx, from.key, p.wasm, b.Bytes())
	if errors.Is(err, compiler.ErrNoChild) {
		if err = p.read.Cost().Within(withoutChild); err == nil {
			code, err = r.cache.Fill(ctx, from.key, p.wasm, b.Bytes())
		}
	}
	p.code = code
	return err
}
