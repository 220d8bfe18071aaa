package sandbox

import (
	"context"
	"errors"
	"time"
)

// Grants are what the operator lets a module have. A module that imports what is
// not granted does not load. The zero Grants grant nothing.
type Grants struct {
	HTTP bool // may ask its host for HTTP requests
	KV   bool // may keep values with its host
	// Dirs are the directories that the guest sees, each under its own path.
	Dirs []Dir
	// Config is what the guest may know: Extism guests by config_get, others as
	// their environment.
	Config map[string]string
}

// grantable are the functions of our own that a module may import, and whether grants allow them.
var grantable = map[string]func(Grants) bool{
	"http": func(g Grants) bool { return g.HTTP },
	"kv":   func(g Grants) bool { return g.KV },
	"log":  func(Grants) bool { return true },
}

// A Dir is a directory with all below it.
type Dir struct {
	Path  string // absolute
	Write bool   // whether files may be changed; reading is always allowed
	As    string // the path by which the guest knows it, such as /data; "" is Path
}

// A Host carries out what the guest of one call asks for. It decides whether the call may have it:
// the sandbox only knows whether the module may ask at all. Its errors go to the guest; one that
// wraps [ErrDenied] is counted as a denial. The methods are called one at a time, and must return
// when ctx ends.
type Host interface {
	// HTTP sends a request. The response belongs to the guest.
	HTTP(ctx context.Context, r HTTPRequest) (HTTPResponse, error)
	// KV reads or changes the values that are kept for the module.
	KV(ctx context.Context, r KVRequest) (KVResponse, error)
	// File is asked before the guest opens or changes a file of a granted
	// directory. op is read, write, create, remove, rename or link; path is
	// absolute.
	File(ctx context.Context, op, path string) error
}

// ErrDenied says that a guest may not have what it asked for.
var ErrDenied = errors.New("denied")

// maxDenied is how many denials a guest gets in one call. One that goes on asking is looking for a
// vulnerability.
const maxDenied = 16

// An HTTPRequest is what a guest wants to be sent.
type HTTPRequest struct {
	Method, URL string
	Header      map[string][]string
	Body        []byte
}

// An HTTPResponse is what came back.
type HTTPResponse struct {
	Status int
	Header map[string][]string
	Body   []byte
}

// A KVRequest reads or changes the values of a module: Op is get, set, delete or
// list, whose Key is a prefix. TTL is how long a value that is set lives; zero
// is for ever.
type KVRequest struct {
	Op, Key string
	Value   []byte
	TTL     time.Duration
}

// A KVResponse answers a [KVRequest]: Found and Value a get, Keys a list.
type KVResponse struct {
	Found bool
	Value []byte
	Keys  []string
}

// noHost is the host of a call that has none.
type noHost struct{}

func (noHost) HTTP(context.Context, HTTPRequest) (HTTPResponse, error) {
	return HTTPResponse{}, ErrDenied
}
func (noHost) KV(context.Context, KVRequest) (KVResponse, error) { return KVResponse{}, ErrDenied }
func (noHost) File(context.Context, string, string) error        { return ErrDenied }
