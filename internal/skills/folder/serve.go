package folder

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/wasmgate/wasmgate/internal/files/watch"
	"github.com/wasmgate/wasmgate/internal/skills"
)

// MaxMessage is how long a message of the server can be, in bytes: one file, with escapes.
const MaxMessage = 6*skills.MaxSize + 1<<20

// maxRequest bounds a message to the server, in bytes.
const maxRequest = 1 << 20

// A request is a message to the server.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		URI string `json:"uri"`
	} `json:"params"`
}

// A server answers one client.
type server struct {
	folder folder
	out    io.Writer
	mu     sync.Mutex // held over a message, and over the folder
}

// Serve serves the skills in a folder to one client: from is what the server writes, and to what it
// reads. Closing to ends it.
func Serve(dir string) (from io.ReadCloser, to io.WriteCloser, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("folder of skills: %w", err)
	}
	in, to := io.Pipe()
	from, out := io.Pipe()
	s := &server{folder: folder{root: root}, out: out}
	ctx, stop := context.WithCancel(context.Background())
	_, first, _ := s.folder.files() // before the first listing, so that no change is missed
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(ctx, first)
	}()
	go func() {
		defer func() {
			stop()
			out.Close() // also ends a message that no one reads
			in.Close()
			<-watched
			root.Close()
		}()
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxRequest)
		for lines.Scan() {
			var r request
			if json.Unmarshal(lines.Bytes(), &r) == nil && r.ID != nil && s.answer(r) != nil {
				return
			}
		}
	}()
	return from, to, nil
}

// watch tells the client when a file has changed.
func (s *server) watch(ctx context.Context, last string) {
	watch.Each(ctx, func() {
		if _, now, err := s.folder.files(); err == nil && now != last {
			last = now
			_ = s.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}) // its reader has gone otherwise
		}
	})
}

func (s *server) send(message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = s.out.Write(append(b, '\n'))
	return err
}

// answer answers a request.
func (s *server) answer(r request) error {
	result, err := s.result(r)
	if err != nil {
		return s.send(map[string]any{"jsonrpc": "2.0", "id": r.ID, "error": map[string]any{"code": -32602, "message": err.Error()}})
	}
	if result == nil {
		return s.send(map[string]any{"jsonrpc": "2.0", "id": r.ID, "error": map[string]any{"code": -32601, "message": "method not found"}})
	}
	return s.send(map[string]any{"jsonrpc": "2.0", "id": r.ID, "result": result})
}

// result returns the result of a request; nil of a method that the server does not have.
func (s *server) result(r request) (any, error) {
	switch r.Method {
	case "initialize":
		return map[string]any{
			"protocolVersion": "2025-11-25", "serverInfo": map[string]string{"name": "folder", "version": "1"},
			"capabilities": map[string]any{
				"resources": map[string]any{"listChanged": true}, "extensions": map[string]any{skills.Extension: map[string]any{}},
			},
		}, nil
	case "ping":
		return map[string]any{}, nil
	case "resources/list":
		return map[string]any{"resources": []any{}}, nil
	case "resources/templates/list":
		return map[string]any{"resourceTemplates": []any{}}, nil
	case "skills/list":
		list, err := s.folder.list()
		return map[string]any{"skills": list}, err
	case "resources/read":
		content, err := s.folder.read(r.Params.URI)
		return map[string]any{"contents": []any{content}}, err
	}
	return nil, nil
}
