package upstream_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
)

// A taskDeed is as a webDeed, of a server that carries calls out as tasks: what it answers
// the call, what it says of the task, one after the other, and what the result is. TASK in
// them is the task's id.
type taskDeed struct {
	code, says string
	made       string
	get        []string
	result     string // of MCP 2025-11-25
}

// modernTaskDeeds are those of a server of MCP 2026-07-28. Its tasks outlive connections.
var modernTaskDeeds = map[string]taskDeed{
	"answers":  {"ok", "", fine, nil, ""},
	"a task":   {"ok", "", newTask("working"), []string{ofTask("working", ""), ofTask("completed", `"result":`+fine)}, ""},
	"hangs up": {"ok", "", newTask("working"), []string{"!", "!", ofTask("completed", `"result":`+fine)}, ""},
	"503":      {"ok", "", newTask("working"), []string{"HTTP 503", ofTask("completed", `"result":`+fine)}, ""},
	"fails":    {"tool_error", "", newTask("working"), []string{ofTask("failed", `"error":{"code":-32603,"message":"no"}`)}, ""},
	"cancels":  {"tool_error", "", newTask("working"), []string{ofTask("cancelled", "")}, ""},
	"forgets":  {"tool_error", "", newTask("working"), []string{`?{"code":-32602,"message":"what task?"}`}, ""},

	"no id":                 {"protocol", "taskId", `{"resultType":"task","status":"working"}`, nil, ""},
	"an id without end":     {"protocol", "taskId", `{"resultType":"task","status":"working","taskId":"` + strings.Repeat("x", 1<<16) + `"}`, nil, ""},
	"an unknown status":     {"protocol", "status", newTask("working"), []string{ofTask("resting", "")}, ""},
	"goes back":             {"protocol", "again", newTask("failed"), []string{ofTask("working", "")}, ""},
	"another task":          {"protocol", "another", newTask("working"), []string{strings.ReplaceAll(ofTask("working", ""), "TASK", "1e9")}, ""},
	"no result":             {"protocol", "no complete result", newTask("working"), []string{ofTask("completed", `"result":null`)}, ""},
	"a task as a result":    {"protocol", "no complete result", newTask("working"), []string{ofTask("completed", `"result":`+newTask("working"))}, ""},
	"no error":              {"protocol", "no error", newTask("working"), []string{ofTask("failed", `"error":[]`)}, ""},
	"asks without a word":   {"protocol", "does not name the input", newTask("working"), []string{ofTask("input_required", "")}, ""},
	"asks for the shell":    {"protocol", "which a server cannot ask of a client", newTask("working"), []string{ofTask("input_required", `"inputRequests":{"a":{"method":"system/exec"}}`)}, ""},
	"asks a hundred things": {"protocol", "more than", newTask("working"), []string{ofTask("input_required", `"inputRequests":{`+manyRequests(100)+`}`)}, ""},
	"asks who is nobody":    {"refused_authorize", "cannot be asked", newTask("working"), []string{ofTask("input_required", `"inputRequests":{`+manyRequests(16)+`}`)}, ""},
	"talks nonsense":        {"protocol", "", newTask("working"), []string{`"\x00"`, "}{"}, ""},
	"a giant message":       {"refused_limit", "limits.result is", newTask("working"), []string{ofTask("working", `"statusMessage":"`+strings.Repeat("x", 2*tortureMost)+`"`)}, ""},
	"deep nesting":          {"protocol", "levels deep", newTask("working"), []string{strings.Repeat("[", 100_000)}, ""},
	"lets nobody in":        {"transport", "HTTP 403", newTask("working"), []string{"HTTP 403"}, ""},
	"goes on without end":   {"timeout", "no answer within", newTask("working"), []string{ofTask("working", "")}, ""},
	"is silent":             {"timeout", "no answer within", newTask("working"), []string{"-"}, ""},
	"never comes back":      {"timeout", "no answer within", newTask("working"), []string{"!"}, ""},
	"answers who has left":  {"cancelled", "", newTask("working"), []string{"-"}, ""},
}

// olderTaskDeeds are those of a server of MCP 2025-11-25.
var olderTaskDeeds = map[string]taskDeed{
	"answers":              {"ok", "", fine, nil, ""},
	"a task":               {"ok", "", oldTask, []string{ofTask("working", ""), ofTask("completed", "")}, fine},
	"fails":                {"tool_error", "", oldTask, []string{ofTask("failed", "")}, `?{"code":-32603,"message":"no"}`},
	"forgets":              {"tool_error", "", oldTask, []string{`?{"code":-32602,"message":"what task?"}`}, ""},
	"no id":                {"protocol", "taskId", `{"task":{"status":"working"}}`, nil, ""},
	"an unknown status":    {"protocol", "status", oldTask, []string{ofTask("resting", "")}, ""},
	"another task":         {"protocol", "another", oldTask, []string{strings.ReplaceAll(ofTask("working", ""), "TASK", "1e9")}, ""},
	"a result that is 7":   {"protocol", "not an object", oldTask, []string{ofTask("completed", "")}, "7"},
	"hangs up":             {"transport", "EOF", oldTask, []string{"!"}, ""},
	"goes on without end":  {"timeout", "no answer within", oldTask, []string{ofTask("working", "")}, ""},
	"no result, goes on":   {"timeout", "no answer within", oldTask, []string{ofTask("input_required", "")}, "-"},
	"no result, is silent": {"timeout", "no answer within", oldTask, []string{ofTask("input_required", ""), "-"}, "-"},
	"answers who has left": {"cancelled", "", oldTask, []string{"-"}, ""},
}

var oldTask = `{"task":` + ofTask("working", `"pollInterval":1`) + `}`

// newTask and ofTask are makes and task, with an id that is made for each.
func newTask(status string) string { return strings.ReplaceAll(makes(status), "t 1", "TASK") }
func ofTask(status, more string) string {
	return strings.ReplaceAll(task(status, more), "t 1", "TASK")
}

func manyRequests(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"%d":%s`, i, askRoots)
	}
	return strings.Join(all, ",")
}

// tortureTasks is a server over HTTP that carries calls out as tasks in the way that each
// chooses by its argument do.
type tortureTasks struct {
	modern bool
	deeds  map[string]taskDeed

	mu    sync.Mutex
	tasks []tortureTask // by id
}

type tortureTask struct {
	deed  taskDeed
	asked int
}

func (s *tortureTasks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	msg, _ := gate.ParseDoc(body)
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if msg.Get("id").IsZero() {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	rig.WriteAnswer(w, r, msg.Get("id"), s.answer(msg.Get("method").Text(), msg.Get("params")))
}

func (s *tortureTasks) answer(method string, params gate.Doc) string {
	switch {
	case method == "server/discover" && s.modern:
		return offersTasks
	case method == "initialize" && !s.modern:
		return strings.Replace(rig.Initialized, `"capabilities":{}`, `"capabilities":{"tasks":`+declared+`}`, 1)
	case method == "tools/list":
		return strings.ReplaceAll(tortureTools("", 0, ""), `{"type":"object"}`, `{"type":"object"},"execution":{"taskSupport":"required"}`)
	case method == "tools/call":
		return s.make(params.At("/arguments/do").Text())
	case method == "tasks/cancel":
		return `{"resultType":"complete"}`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := strconv.Atoi(params.Get("taskId").Text())
	if err != nil || n >= len(s.tasks) {
		return `?{"code":-32601,"message":"no such method"}`
	}
	t := &s.tasks[n]
	if method == "tasks/result" {
		return t.deed.result
	}
	t.asked++
	says := t.deed.get[min(t.asked, len(t.deed.get))-1]
	return strings.ReplaceAll(strings.ReplaceAll(says, "TASK", strconv.Itoa(n)), `"pollIntervalMs"`, `"pollInterval":1,"pollIntervalMs"`)
}

func (s *tortureTasks) make(deed string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = append(s.tasks, tortureTask{deed: s.deeds[deed]})
	return strings.ReplaceAll(s.deeds[deed].made, "TASK", strconv.Itoa(len(s.tasks)-1))
}
