package sandbox

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmgate/wasmgate/internal/panicked"
)

// hostFunctions are the functions of [hostModule]. http and kv are the canonical-ABI lowering of
// f(request: string) -> result<string, string>, log of log(level: u32, message: string).
var hostFunctions = map[string]func(c *call, guest api.Module, stack []uint64){
	"http": answered((*requests).http),
	"kv":   answered((*requests).kv),
	"log":  logged,
}

func provideHost(ctx context.Context, engine wazero.Runtime) error {
	b := engine.NewHostModuleBuilder(hostModule)
	for name, f := range hostFunctions {
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, guest api.Module, stack []uint64) {
			f(ctx.Value(callKey{}).(*call), guest, stack)
		}), []api.ValueType{i32, i32, i32}, nil).Export(name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// A guarded host keeps a panic of the host's apart from what ends a guest, which
// did nothing wrong: the call fails by it, and its instance is not used again.
type guarded struct {
	call *call
	host Host
}

// HTTP implements [Host].
func (g guarded) HTTP(ctx context.Context, r HTTPRequest) (HTTPResponse, error) {
	defer g.guard()
	return g.host.HTTP(ctx, r)
}

// KV implements [Host].
func (g guarded) KV(ctx context.Context, r KVRequest) (KVResponse, error) {
	defer g.guard()
	return g.host.KV(ctx, r)
}

// File implements [Host].
func (g guarded) File(ctx context.Context, op, path string) error {
	defer g.guard()
	return g.host.File(ctx, op, path)
}

func (g guarded) guard() {
	if p := recover(); p != nil {
		g.call.broken = fmt.Errorf("sandbox: tool %s: the host: %w", g.call.tool, panicked.Error(p))
		panic(g.call.broken) // is how a host function ends a guest
	}
}

// maxRequest is the size in bytes of a request that a guest passes: several times
// what its host sends. Reading JSON takes up to twenty times its size, and cannot
// be interrupted.
const maxRequest = 4 << 20

var errRequest = fmt.Errorf("the request has more than %d bytes", maxRequest)

// answered makes a host function of one from request to answer. A guest that
// breaks the ABI is ended.
func answered(f func(r *requests, request []byte) ([]byte, error)) func(*call, api.Module, []uint64) {
	return func(c *call, guest api.Module, stack []uint64) {
		if c.allocating {
			c.end(TrapGuest, "it calls its host from "+exportRealloc)
		}
		var answer []byte
		err := errRequest
		if uint32(stack[1]) <= maxRequest {
			answer, err = f(&c.requests, c.read(guest, stack[0], stack[1]))
		}
		area := [12]byte{}
		if err != nil {
			area[0], answer = 1, []byte(err.Error())
		}
		c.pay(len(answer))
		at, err := c.lower(c.instance, answer)
		if err != nil {
			panic(err)
		}
		binary.LittleEndian.PutUint32(area[4:], at)
		binary.LittleEndian.PutUint32(area[8:], uint32(len(answer)))
		if !guest.Memory().Write(uint32(stack[2]), area[:]) {
			c.end(TrapGuest, "it asks for an answer outside its memory")
		}
	}
}

// read returns a copy of what a guest passes.
func (c *call) read(guest api.Module, at, size uint64) []byte {
	view, ok := guest.Memory().Read(uint32(at), uint32(size))
	if !ok {
		c.end(TrapGuest, "it passes a string that is outside its memory")
	}
	c.pay(len(view))
	return append([]byte(nil), view...)
}

// pay charges for bytes, and ends the guest that has to end.
func (c *call) pay(bytes int) {
	if err := c.meter.toll(bytes); err != nil {
		panic(err)
	}
}

// requests are what the guest of a call asks of its host.
type requests struct {
	call   *call
	host   Host
	made   int
	denied int
}

// ask counts what a guest asks of its host.
func (q *requests) ask() {
	if q.made++; q.made > q.call.limits.HostCalls {
		q.call.end(TrapGuest, fmt.Sprintf("it asks its host more than %d times", q.call.limits.HostCalls))
	}
}

// answer counts the denials among the host's errors.
func (q *requests) answer(err error) error {
	if errors.Is(err, ErrDenied) {
		if q.denied++; q.denied > maxDenied {
			q.call.end(TrapDenied, fmt.Sprintf("it was denied what it asked for more than %d times", maxDenied))
		}
	}
	if err != nil && q.call.Err() != nil { // the host was slow, and the guest has no time left to hear of it
		panic(err)
	}
	return err
}

// file is asked before a guest opens or changes a file.
func (q *requests) file(ctx context.Context, op, path string) error {
	q.ask()
	var err error
	q.call.away(func() { err = q.host.File(ctx, op, path) })
	return q.answer(err)
}

// body is bytes as JSON: text where they are text.
type body struct {
	Body   *string `json:"body,omitempty"`
	Base64 []byte  `json:"body_base64,omitempty"`
}

func (b body) bytes() []byte {
	if b.Body != nil {
		return []byte(*b.Body)
	}
	return b.Base64
}

func bodyOf(b []byte) body {
	if utf8.Valid(b) {
		text := string(b)
		return body{Body: &text}
	}
	return body{Base64: b}
}

func (q *requests) http(request []byte) ([]byte, error) {
	var r struct {
		Method  string              `json:"method"`
		URL     string              `json:"url"`
		Headers map[string][]string `json:"headers"`
		body
	}
	if err := json.Unmarshal(request, &r); err != nil {
		return nil, fmt.Errorf("the HTTP request of the module is malformed: %w", err)
	}
	res, err := q.send(HTTPRequest{Method: r.Method, URL: r.URL, Header: r.Headers, Body: r.bytes()})
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Status  int                 `json:"status"`
		Headers map[string][]string `json:"headers"`
		body
	}{res.Status, res.Header, bodyOf(res.Body)})
}

// send has the host send a request.
func (q *requests) send(r HTTPRequest) (HTTPResponse, error) {
	q.ask()
	var res HTTPResponse
	var err error
	q.call.away(func() { res, err = q.host.HTTP(q.call, r) })
	if err = q.answer(err); err != nil {
		return HTTPResponse{}, err
	}
	return res, nil
}

func (q *requests) kv(request []byte) ([]byte, error) {
	var r struct {
		Op    string `json:"op"`
		Key   string `json:"key"`
		Value string `json:"value"`
		TTL   int64  `json:"ttl_ms"`
	}
	if err := json.Unmarshal(request, &r); err != nil {
		return nil, fmt.Errorf("the key-value request of the module is malformed: %w", err)
	}
	res, err := q.keep(KVRequest{Op: r.Op, Key: r.Key, Value: []byte(r.Value), TTL: time.Duration(r.TTL) * time.Millisecond})
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Found bool     `json:"found"`
		Value string   `json:"value"`
		Keys  []string `json:"keys,omitempty"`
	}{res.Found, string(res.Value), res.Keys})
}

// keep has the host read or change a value.
func (q *requests) keep(r KVRequest) (KVResponse, error) {
	q.ask()
	var res KVResponse
	var err error
	q.call.away(func() { res, err = q.host.KV(q.call, r) })
	if err = q.answer(err); err != nil {
		return KVResponse{}, err
	}
	return res, nil
}

// logged is the host function log.
func logged(c *call, guest api.Module, stack []uint64) {
	level := levels[min(stack[0]&0xffffffff, uint64(len(levels)-1))]
	text := c.read(guest, stack[1], stack[2])
	if level == slog.LevelError {
		c.log.complaint = said(text)
	}
	c.log.message(level, text)
}
