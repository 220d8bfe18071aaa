package upstream_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
)

// A pipeDeed is as a webDeed, of a server on standard input and output.
type pipeDeed struct {
	code, says string
	do         func(s *torturePipe, id string, cancelled <-chan struct{})
}

var pipeDeeds = map[string]pipeDeed{
	"answers":               {"ok", "", pipeSays(right + "\n")},
	"CRLF":                  {"ok", "", pipeSays(right + "\r\n")},
	"empty lines":           {"ok", "", pipeSays("\n\r\n  \n" + right + "\n")},
	"a BOM":                 {"ok", "", pipeSays("\xef\xbb\xbf" + right + "\n")},
	"split at each byte":    {"ok", "", (*torturePipe).split},
	"answers twice":         {"ok", "", pipeSays(right + "\n" + right + "\n")},
	"talks on":              {"ok", "", pipeSays(right + "\n" + told + "\n")},
	"talks before":          {"ok", "", pipeSays(told + "\n" + told + "\n" + right + "\n")},
	"asks what it must not": {"ok", "", pipeSays(asked + "\n" + `{"jsonrpc":"2.0","id":"x","method":"sampling/createMessage","params":{}}` + "\n" + right + "\n")},
	"an error":              {"tool_error", "", pipeSays(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no"}}` + "\n")},
	"answers another first": {"ok", "", pipeSays(strings.Replace(right, "%s", "4711", 1) + "\n" + strings.Replace(right, "%s", `"x"`, 1) + "\n" + right + "\n")},
	"a banner first":        {"ok", "", pipeSays("[info] ready\n" + right + "\n")},
	"a log in JSON":         {"ok", "", pipeSays(`{"level":30,"id":"x","error":{"code":1},"msg":"\"jsonrpc\""}` + "\n{}\n" + right + "\n")},
	"objects as printed":    {"ok", "", pipeSays("{ port: 3000 }\n{'a': 1}\n{\n  level: 'info'\n}\n[ 1, 2 ]\n[{}]\n" + right + "\n")},
	"many lines of a log":   {"ok", "", pipeSays(strings.Repeat("Listening!\n{\"level\":30}\n", 500) + right + "\n")},
	"an id that is text":    {"ok", "", pipeSays(strings.Replace(right, "%s", `"%s"`, 1) + "\n")},
	"an id with a fraction": {"ok", "", pipeSays(strings.Replace(right, "%s", "%s.0", 1) + "\n")},
	"error: null":           {"ok", "", pipeSays(strings.Replace(right, "{", `{"error":null,`, 1) + "\n")},

	"answers another":      {"timeout", "no answer within", pipeSays(strings.Replace(right, "%s", "4711", 1) + "\n")},
	"garbage":              {"timeout", "no answer within", pipeSays("\x00\xff\xfe\x80PNG\n")},
	"a byte at a time":     {"timeout", "no answer within", (*torturePipe).slowly},
	"talks without end":    {"timeout", "no answer within", (*torturePipe).flood},
	"answers who has left": {"cancelled", "", (*torturePipe).tooLate},

	"garbage without end": {"protocol", "not messages", pipeSays(strings.Repeat("\x80\xffPNG\n", 20_000))},
	"no jsonrpc":          {"protocol", "not JSON-RPC", pipeSays(`{"id":%s,"result":{}}` + "\n")},
	"half an answer":      {"protocol", "", pipeSays(strings.TrimSuffix(right, "}") + "\n")},
	"half an object":      {"protocol", "", pipeSays(`{"jsonrpc":"2.0","id":` + "\n")},
	"a batch":             {"protocol", "batch", pipeSays("[" + right + "]\n")},
	"a giant line":        {"protocol", "more than", pipeSays("{" + strings.Repeat("x", 2*tortureMost) + "\n")},
	"deep nesting":        {"protocol", "levels deep", pipeSays(`{"jsonrpc":"2.0","a":` + strings.Repeat("[", 100_000) + "\n")},
	"exits":               {"transport", "exit status 7", exits("")},
	"exits in a message":  {"transport", "exit status 7", exits(right)},
	"closes its output":   {"transport", "the server ended", (*torturePipe).closeOutput},
}

// torturePipe is a server on standard input and output whose misbehaviour each call
// chooses by its argument do.
type torturePipe struct {
	mu  sync.Mutex
	out *bufio.Writer

	running map[string]chan struct{} // closed when the call is cancelled
}

// torture serves until its input ends.
func torture() {
	s := &torturePipe{out: bufio.NewWriter(os.Stdout), running: make(map[string]chan struct{})}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		msg, err := gate.ParseDoc(line)
		if err != nil {
			continue
		}
		id := msg.Get("id").String()
		switch msg.Get("method").Text() {
		case "initialize":
			s.say(`{"jsonrpc":"2.0","id":` + id + `,"result":` + rig.Initialized + "}\n")
		case "server/discover":
			s.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"method not found"}}` + "\n")
		case "tools/list":
			s.say(`{"jsonrpc":"2.0","id":` + id + `,"result":` + tortureTools("", 0, "") + "}\n")
		case "tools/call":
			cancelled := make(chan struct{})
			s.running[id] = cancelled
			go pipeDeeds[msg.At("/params/arguments/do").Text()].do(s, id, cancelled)
		case "notifications/cancelled":
			if of := msg.At("/params/requestId").String(); s.running[of] != nil {
				close(s.running[of])
				delete(s.running, of)
			}
		}
	}
}

func (s *torturePipe) say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.WriteString(what)
	s.out.Flush()
}

func pipeSays(format string) func(*torturePipe, string, <-chan struct{}) {
	return func(s *torturePipe, id string, _ <-chan struct{}) { s.say(withID(format, id)) }
}

func exits(format string) func(*torturePipe, string, <-chan struct{}) {
	return func(s *torturePipe, id string, _ <-chan struct{}) {
		s.say(withID(format, id))
		fmt.Fprintln(os.Stderr, "I am leaving")
		os.Exit(7)
	}
}

func (s *torturePipe) split(id string, _ <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range []byte(withID(right, id) + "\n") {
		s.out.WriteByte(b)
		s.out.Flush()
	}
}

// slowly begins a message that it never ends, until the call is cancelled.
func (s *torturePipe) slowly(_ string, cancelled <-chan struct{}) {
	for {
		select {
		case <-cancelled:
			s.say("\n")
			return
		case <-time.After(5 * time.Millisecond):
			s.say(" ")
		}
	}
}

func (s *torturePipe) flood(_ string, cancelled <-chan struct{}) {
	for {
		select {
		case <-cancelled:
			return
		default:
			s.say(told + "\n")
		}
	}
}

func (s *torturePipe) tooLate(id string, cancelled <-chan struct{}) {
	<-cancelled
	s.say(withID(right, id) + "\n")
}

func (s *torturePipe) closeOutput(string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	os.Stdout.Close()
}
