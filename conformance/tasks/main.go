// Tasks is an MCP server of revision 2026-07-28 with the tools that the official suite's scenarios of the tasks
// extension (SEP-2663) call. The SDK's everything-server has no tasks.
//
//	tasks -http 127.0.0.1:PORT
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	extension = "io.modelcontextprotocol/tasks"
	poll      = 100 * time.Millisecond // how often to ask for a task
	soon      = 300 * time.Millisecond // how long the jobs that take no seconds of their client's take
)

// The codes of errors, of JSON-RPC and of MCP.
const (
	methodNotFound    = -32601
	invalidParams     = -32602
	jobFailed         = -32000
	headerMismatch    = -32020
	missingCapability = -32021
)

// A message is a request or a notification.
type message struct {
	ID     json.RawMessage
	Method string
	Params params
}

// params are those of all methods in one.
type params struct {
	Name      string
	Arguments struct {
		Name, Label string
		Seconds     float64
	}
	TaskID         string
	InputResponses map[string]struct{ Content struct{ Name string } }
	Meta           struct {
		Client struct {
			Extensions map[string]json.RawMessage
		} `json:"io.modelcontextprotocol/clientCapabilities"`
	} `json:"_meta"`
}

// A fault is a JSON-RPC error.
type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

type object map[string]any

// A task says of itself what tasks/get tells. Nothing runs: it has ended once
// it is due and nothing is asked for any more.
type task struct {
	ID       string    `json:"taskId"`
	Status   string    `json:"status"`
	Created  time.Time `json:"createdAt"`
	Updated  time.Time `json:"lastUpdatedAt"`
	TTL      *int64    `json:"ttlMs"`
	Poll     int64     `json:"pollIntervalMs"`
	Requests object    `json:"inputRequests,omitempty"`
	Result   object    `json:"result,omitempty"`
	Error    *fault    `json:"error,omitempty"`
	Type     string    `json:"resultType"`

	due    time.Time
	result object // of its end, or
	err    *fault
}

// turn gives the task another status, unless it has ended.
func (t *task) turn(status string) {
	if t.Status == "working" || t.Status == "input_required" {
		t.Status, t.Updated = status, time.Now().UTC()
	}
}

// settle ends the task if its time has come.
func (t *task) settle() {
	switch {
	case t.Status != "working" || time.Now().Before(t.due):
	case t.err != nil:
		t.turn("failed")
		t.Error = t.err
	default:
		t.turn("completed")
		t.Result = t.result
	}
}

// A server keeps the tasks. It is safe for concurrent use.
type server struct {
	mu    sync.Mutex
	tasks map[string]*task
}

// create makes a task that takes a time, and then has that end.
func (s *server) create(takes time.Duration, end object, err *fault, requests object) (any, *fault) {
	now := time.Now().UTC()
	t := &task{
		Status: "working", Created: now, Updated: now, Poll: poll.Milliseconds(), Type: "task",
		due: now.Add(takes), result: end, err: err,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.ID = "task-" + strconv.Itoa(len(s.tasks)+1)
	s.tasks[t.ID] = t
	created := *t
	if t.Type = "complete"; len(requests) > 0 {
		t.Status, t.Requests = "input_required", requests
	}
	return created, nil
}

// about answers the methods that are about a task.
func (s *server) about(method string, p params) (any, *fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tasks[p.TaskID]
	if t == nil {
		return nil, &fault{Code: invalidParams, Message: "there is no task " + p.TaskID}
	}
	t.settle()
	switch method {
	case "tasks/get":
		return *t, nil
	case "tasks/cancel":
		t.turn("cancelled")
		t.Requests = nil
	case "tasks/update":
		rest := object{} // a new one: the old may be on its way out
		for key, request := range t.Requests {
			if _, ok := p.InputResponses[key]; !ok {
				rest[key] = request
			}
		}
		if t.Requests = rest; len(rest) == 0 {
			t.turn("working")
		}
	}
	return object{"resultType": "complete"}, nil
}

func text(s string) object {
	return object{"resultType": "complete", "content": []object{{"type": "text", "text": s}}}
}

// ask is a question for something, a string or a boolean.
func ask(name, kind string) object {
	return object{"method": "elicitation/create", "params": object{
		"mode": "form", "message": "What is the " + name + "?",
		"requestedSchema": object{"type": "object", "properties": object{name: object{"type": kind}}},
	}}
}

// needsTasks is the answer to who has not declared the extension.
func needsTasks(what string) *fault {
	return &fault{
		Code: missingCapability, Message: what + " needs the extension " + extension,
		Data: object{"requiredCapabilities": object{"extensions": object{extension: object{}}}},
	}
}

func (s *server) call(p params, declared bool) (any, *fault) {
	name, asked := p.InputResponses["user_name"]
	switch {
	case p.Name == "greet":
		return text("Hello, " + p.Arguments.Name + "!"), nil
	case p.Name == "slow_compute":
		takes, end := time.Duration(p.Arguments.Seconds*float64(time.Second)), text("computed "+p.Arguments.Label)
		if !declared {
			time.Sleep(takes)
			return end, nil
		}
		return s.create(takes, end, nil, nil)
	case p.Name == "test_tool_with_task" && !asked:
		return object{"resultType": "input_required", "requestState": "asked", "inputRequests": object{"user_name": ask("name", "string")}}, nil
	case !declared:
		return nil, needsTasks(p.Name)
	}
	switch p.Name {
	case "test_tool_with_task":
		return s.create(soon, text("Hello, "+name.Content.Name+"!"), nil, nil)
	case "failing_job":
		end := text("the job has failed")
		end["isError"] = true
		return s.create(soon, end, nil, nil)
	case "protocol_error_job":
		return s.create(soon, nil, &fault{Code: jobFailed, Message: "the job has crashed"}, nil)
	case "confirm_delete":
		return s.create(0, text("deleted"), nil, object{"confirm": ask("confirm", "boolean")})
	case "multi_input":
		return s.create(0, text("both are here"), nil, object{"first": ask("name", "string"), "second": ask("name", "string")})
	}
	return nil, &fault{Code: invalidParams, Message: "there is no tool " + p.Name}
}

func (s *server) answer(m message) (any, *fault) {
	_, declared := m.Params.Meta.Client.Extensions[extension]
	switch m.Method {
	case "server/discover":
		return object{
			"resultType": "complete", "supportedVersions": []string{"2026-07-28"}, "ttlMs": 0, "cacheScope": "private",
			"serverInfo":   object{"name": "tasks", "version": "1"},
			"capabilities": object{"tools": object{}, "extensions": object{extension: object{}}},
		}, nil
	case "tools/list":
		var tools []object
		for _, name := range []string{"greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task"} {
			tools = append(tools, object{"name": name, "inputSchema": object{"type": "object"}})
		}
		return object{"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools}, nil
	case "tools/call":
		return s.call(m.Params, declared)
	case "tasks/get", "tasks/update", "tasks/cancel":
		if !declared {
			return nil, needsTasks(m.Method)
		}
		return s.about(m.Method, m.Params)
	}
	return nil, &fault{Code: methodNotFound, Message: "there is no method " + m.Method}
}

// mismatch says which header contradicts the message.
func mismatch(h http.Header, m message) *fault {
	want := map[string]string{"Mcp-Method": m.Method}
	switch m.Method {
	case "tools/call":
		want["Mcp-Name"] = m.Params.Name
	case "tasks/get", "tasks/update", "tasks/cancel":
		want["Mcp-Name"] = m.Params.TaskID
	}
	for header, want := range want {
		if got := h.Get(header); got != want {
			return &fault{Code: headerMismatch, Message: fmt.Sprintf("the header %s is %q, and the message says %q", header, got, want)}
		}
	}
	return nil
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m message
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer, status := object{"jsonrpc": "2.0", "id": m.ID}, http.StatusOK
	result, err := any(nil), mismatch(r.Header, m)
	if err == nil {
		result, err = s.answer(m)
	}
	switch {
	case err == nil:
		answer["result"] = result
	case err.Code == methodNotFound:
		answer["error"], status = err, http.StatusNotFound
	default:
		answer["error"], status = err, http.StatusBadRequest
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		log.Print(err)
	}
}

func main() {
	address := flag.String("http", "127.0.0.1:8080", "the address to listen on")
	flag.Parse()
	http.Handle("/mcp", &server{tasks: map[string]*task{}})
	log.Fatal((&http.Server{Addr: *address, ReadHeaderTimeout: time.Minute}).ListenAndServe())
}
