package artifact

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	// maxModule bounds a module and a layer, in bytes. The largest tools known, with
	// an interpreter inside, have 30 MiB.
	maxModule = 64 << 20
	// defaultTimeout is enough for maxModule over 2 Mbit/s.
	defaultTimeout = 5 * time.Minute
)

// magic begins each WebAssembly binary, components included (WebAssembly Core
// 2.0, 5.5.16).
const magic = "\x00asm"

// Config configures a [Store]. The zero Config keeps no cache.
type Config struct {
	// Dir is the cache, which is made (0700) when it is needed. It may be used by several processes at
	// once, and any file in it may be removed at any time. Files that were not used for 90 days are
	// removed, and so are files beyond 2 GiB in all. Empty means no cache.
	Dir string
	// DockerConfig is the file with the credentials for registries. Empty means
	// .docker/config.json in the user's home. A file that is not there holds none.
	DockerConfig string
	// Timeout bounds one Fetch. Zero means 5 minutes; negative is an error.
	Timeout time.Duration
	// DialContext makes the connections of the transport that a nil Transport means;
	// nil is a [net.Dialer]'s.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// Transport sends the requests. Nil means one that verifies certificates by the
	// system's roots, without a proxy. Requests that are not allowed never reach it.
	Transport http.RoundTripper
	// Progress, if not nil, is called with the number of bytes of a layer that have arrived, and with
	// its size. Fetch calls it in its own goroutine.
	Progress func(done, total int64)
	Log      *slog.Logger // nil discards
}

// A Module is a WASM module as it was found. Its bytes are the caller's.
type Module struct {
	Bytes  []byte // begin with \0asm
	Digest string // SHA-256 of Bytes: 64 hex digits in lower case
	Source string // the path, or the reference and what was taken from it
}

// A Store fetches modules. It may be used from several goroutines.
type Store struct {
	cfg   Config
	cache cache
	keys  keyring
}

// New returns a Store. It touches neither the network nor the file system.
func New(cfg Config) (*Store, error) {
	if cfg.Timeout < 0 {
		return nil, fmt.Errorf("artifact: Timeout is %v; it must not be negative", cfg.Timeout)
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Transport == nil {
		cfg.Transport = newTransport(cfg.DialContext)
	}
	if cfg.Progress == nil {
		cfg.Progress = func(int64, int64) {}
	}
	return &Store{cfg: cfg, cache: cache{cfg.Dir, cfg.Log}, keys: newKeyring(cfg.DockerConfig)}, nil
}

// Fetch returns the module that ref stands for (see [Parse]). A module that is in the cache needs no
// network.
//
// The error says what to do next where that is known. It wraps ctx.Err() if ctx ended first, and
// [context.DeadlineExceeded] after Config.Timeout.
func (s *Store) Fetch(ctx context.Context, ref string) (m Module, err error) {
	r, err := Parse(ref)
	if err != nil {
		return Module{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, fmt.Errorf("took longer than %v: %w", s.cfg.Timeout, context.DeadlineExceeded))
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // a defect that a registry's answer can reach must not end the process
			err = fmt.Errorf("panic: %v", p)
		}
		if cause := context.Cause(ctx); err != nil && cause != nil {
			if err = cause; !errors.Is(cause, ctx.Err()) {
				err = fmt.Errorf("%w: %w", ctx.Err(), cause)
			}
		}
		if err != nil {
			m, err = Module{}, fmt.Errorf("artifact: fetch %s: %w", r, err)
		}
	}()
	if err := ctx.Err(); err != nil {
		return Module{}, err
	}
	if r.Path != "" {
		b, err := readFile(r.Path, maxModule)
		if err != nil {
			return Module{}, err
		}
		return newModule(b, r.Path)
	}
	return s.pull(ctx, r)
}

func newModule(b []byte, source string) (Module, error) {
	if !bytes.HasPrefix(b, []byte(magic)) {
		return Module{}, fmt.Errorf(`%s is not a WASM module: it does not begin with \0asm`, source)
	}
	sum := sha256.Sum256(b)
	return Module{Bytes: b, Digest: hex.EncodeToString(sum[:]), Source: source}, nil
}
