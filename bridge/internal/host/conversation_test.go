package host_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/internal/store"
)

var record = flag.Bool("record", false, "write what the host answers into the conversations, beside what was recorded")

// TestConversations has clients send what the files of testdata/conversations hold, and wants the
// answers that were recorded there.
//
// A conversation is a txtar archive of steps. The name of a request is its number, its method and
// how to send it: "1 POST" is sent and read to its end, "1 POST &" is sent, and goes on; headers,
// an empty line and a body are in it. ">" is lines on standard input. "wait 1 2" waits until
// exchange 1 has brought two messages, "end 1" for its end, and "hang 1" ends its connection.
// "release" lets a waiting call go on; "changed", "updated" and "logged" are messages from servers.
// "1 answer" is what came: the status, each message, and the headers except those that follow from
// the way of writing.
//
// The answers were recorded from the front that the MCP SDK carried. Where the host has answered
// otherwise ever since, "1 since" has the answer, below a line that says why.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/conversations/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			said, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c := newConversation(t)
			script := steps(string(said))
			for _, s := range script {
				c.step(t, s)
			}
			c.close(t)
			if *record {
				if err := os.WriteFile(file, c.recorded(script), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			c.check(t, script)
		})
	}
}

// A step is a file of an archive; the first has no name, and is the comment.
type stage struct{ name, text string }

func steps(archive string) []stage {
	all := []stage{{}}
	for l := range strings.Lines(archive) {
		if name, ok := strings.CutPrefix(strings.TrimSuffix(l, " --\n"), "-- "); ok && strings.HasSuffix(l, " --\n") {
			all = append(all, stage{name: name})
			continue
		}
		all[len(all)-1].text += l
	}
	return all
}

// A conversation is a host with tools that do as their names say, and what its clients
// have exchanged with it.
type conversation struct {
	host    *host.Host
	url     string
	release chan struct{}
	stdin   io.WriteCloser

	mu        sync.Mutex
	session   string
	task      string
	calls     []string // that subscribed
	sessions  []gate.SessionKey
	exchanges map[string]*said
	order     []string
}

// said is what came of one request.
type said struct {
	mu       sync.Mutex
	head     string
	messages []string
	event    string // the last one's id
	hang     context.CancelFunc
	ended    chan struct{}
}

func newConversation(t *testing.T) *conversation {
	c := &conversation{release: make(chan struct{}, 9), exchanges: make(map[string]*said)}
	db, err := store.Open(t.Context(), store.Memory)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := jobs.New(t.Context(), jobs.Options{Store: db, Public: message.Public})
	if err != nil {
		t.Fatal(err)
	}
	offered := func(f gate.Feature) []*gate.Tool {
		all := map[gate.Feature][]string{
			gate.FeatureTool: {`{"name":"s__echo","inputSchema":{"type":"object"}}`}, gate.FeaturePrompt: {`{"name":"s__p"}`},
			gate.FeatureResource: {`{"uri":"s:///r","name":"r"}`}, gate.FeatureTemplate: {`{"uriTemplate":"s:///{x}","name":"t"}`},
		}
		var tools []*gate.Tool
		for _, one := range all[f] {
			tools = append(tools, &gate.Tool{Name: gate.ToolName{Server: "s", Tool: "echo"}, Feature: f, Definition: gate.MustDoc(one)})
		}
		return tools
	}
	features := func(_ context.Context, _ *gate.Principal, f gate.Feature) ([]*gate.Tool, error) {
		return offered(f), nil
	}
	lookup := func(_ context.Context, a gate.Action, name string) (*gate.Tool, error) {
		if actions.IsMethod(a) {
			return nil, errors.New("no such method")
		}
		return &gate.Tool{Name: gate.ToolName{Server: "s", Tool: name}, Feature: gate.FeatureTool, Definition: gate.MustDoc(`{"name":"s__echo","inputSchema":{"type":"object"}}`)}, nil
	}
	c.host, err = host.New(host.Config{
		Config: dispatch.Config{
			Do:           c.do,
			Jobs:         runner,
			Recall:       func(context.Context, gate.Call, gate.Result) error { return nil },
			Tools:        func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return offered(gate.FeatureTool), nil },
			Features:     features,
			Known:        features,
			Offering:     func(context.Context) mcp.Offering { return mcp.AllOffered },
			Lookup:       lookup,
			Instructions: func() []mcp.Instructions { return []mcp.Instructions{{Server: "s", Text: "use <it> & \"enjoy\" it"}} },
			SetLevel: func(_ context.Context, k gate.SessionKey, level string) error {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.sessions = append(c.sessions, k)
				if level != "" && !slices.Contains(mcp.Severities, level) {
					return errors.New("no level")
				}
				return nil
			},
			Unsubscribe: func(context.Context, string, string) error { return nil },
			Clean:       func(_ string, params gate.Doc) (gate.Doc, bool) { return params, true },
			TaskAfter:   200 * time.Millisecond,
		},
		Terms: host.Terms{Version: "1", MaxBody: 100 << 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(c.host)
	c.url = srv.URL
	t.Cleanup(func() {
		runner.Close(context.Background())
		srv.CloseClientConnections()
		srv.Close()
		db.Close()
	})
	return c
}

// do carries out a call.
func (c *conversation) do(ctx context.Context, call gate.Call) (gate.Result, error) {
	if call.Refused != nil {
		return gate.Result{}, &gate.Refusal{Step: step.Parse, Name: call.Name, Reason: call.Refused.Error()}
	}
	if call.Client != nil {
		call.Client.Granted()
	}
	done := gate.Result{Doc: gate.MustDoc(`{"content":[{"type":"text","text":"<done>"}]}`)}
	tell := func(n int) {
		progress := gate.MustDoc(fmt.Sprintf(`{"progress":%d,"message":"<so far>"}`, n))
		if token := call.Meta.Get("progressToken"); !token.IsZero() {
			call.Client.Notify(ctx, "notifications/progress", progress.With("progressToken", token.Raw()))
		}
		call.Client.Notify(ctx, "notifications/message", gate.MustDoc(`{"level":"info","data":"<told>"}`))
	}
	wait := func() (gate.Result, error) {
		select {
		case <-c.release:
			return done, nil
		case <-ctx.Done():
			return gate.Result{}, ctx.Err()
		}
	}
	ask := func(method gate.Action, params string) (gate.Result, error) {
		if call.Reach().Capabilities.IsZero() {
			return gate.Result{Doc: gate.MustDoc(`{"content":[],"peer":null}`)}, nil
		}
		res, err := call.Client.Request(ctx, method, gate.MustDoc(params))
		if err != nil {
			return gate.Result{Doc: done.Doc.With("failed", mcp.MustJSON(err.Error()))}, nil
		}
		return gate.Result{Doc: done.Doc.With("answered", res.Raw())}, nil
	}
	switch call.Name {
	case "echo":
		return gate.Result{Doc: done.Doc.With("args", call.Args.Raw())}, nil
	case "tells":
		tell(1)
		tell(2)
		return done, nil
	case "waits":
		return wait()
	case "tells and waits":
		tell(1)
		return wait()
	case "polls":
		tell(1)
		call.Client.Poll(3 * time.Second)
		return wait()
	case "elicits":
		return ask("elicitation/create", `{"message":"<who>?","requestedSchema":{"type":"object","properties":{}}}`)
	case "asks roots":
		return ask("roots/list", `{}`)
	case "gives up":
		ctx, cancel := context.WithTimeout(ctx, time.Second) // enough to send the question
		defer cancel()
		_, err := call.Client.Request(ctx, "roots/list", gate.MustDoc(`{}`))
		time.Sleep(20 * time.Millisecond)
		return gate.Result{Doc: done.Doc.With("failed", mcp.MustJSON(err.Error()))}, nil
	case "unknown":
		return gate.Result{}, &gate.Refusal{Step: step.Lookup, Name: call.Name}
	case "refused":
		return gate.Result{}, &gate.Refusal{Step: step.Authorize, Name: call.Name, Reason: "not <yours>"}
	case "breaks":
		panic("it breaks")
	}
	if call.Action == gate.Subscribe {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls = append(c.calls, call.ID)
		return gate.Result{Doc: gate.MustDoc(`{}`)}, nil
	}
	return gate.Result{Doc: gate.MustDoc(`{"used":true}`)}, nil
}

func (c *conversation) step(t *testing.T, s stage) {
	t.Helper()
	words := strings.Fields(s.name)
	switch {
	case len(words) == 0:
	case words[0] == "wait":
		n, _ := strconv.Atoi(words[2])
		c.until(t, s.name, func() bool { x := c.exchanges[words[1]]; x.mu.Lock(); defer x.mu.Unlock(); return len(x.messages) >= n })
	case words[0] == "end":
		select {
		case <-c.exchanges[words[1]].ended:
		case <-time.After(time.Minute):
			t.Fatalf("%s has not ended\n%s", words[1], c.said())
		}
	case words[0] == "hang":
		c.exchanges[words[1]].hang()
		<-c.exchanges[words[1]].ended
	case words[0] == "pause":
		for range 100 { // in many pieces: in each the others have their turn, also where the whole process waits for one
			time.Sleep(5 * time.Millisecond)
		}
	case words[0] == "release":
		c.release <- struct{}{}
	case words[0] == "changed":
		c.host.Changed()
	case words[0] == "updated":
		c.mu.Lock()
		calls := slices.Clone(c.calls)
		c.mu.Unlock()
		c.host.Notify(mcp.Notice{Server: "s", Method: mcp.MethodUpdated, Params: gate.MustDoc(`{"uri":"s:///r"}`), Subscribers: calls})
	case words[0] == "logged":
		c.mu.Lock()
		k := c.sessions[len(c.sessions)-1]
		c.mu.Unlock()
		c.host.Notify(mcp.Notice{Server: "s", Method: mcp.MethodLog, Params: gate.MustDoc(`{"level":"error","data":"<heard>"}`), Session: k})
	case words[0] == ">":
		c.say(t, s.text)
	case words[1] == "POST", words[1] == "GET", words[1] == "DELETE", words[1] == "PUT":
		x := c.send(t, words[0], words[1], s.text)
		if len(words) < 3 {
			select {
			case <-x.ended:
			case <-time.After(time.Minute):
				t.Fatalf("%s has not ended\n%s", s.name, c.said())
			}
		}
	case words[1] == "answer", words[1] == "since":
	default:
		t.Fatalf("no step: %q", s.name)
	}
}

func (c *conversation) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: in vain\n%s", what, c.said())
		}
	}
}

func (c *conversation) add(name string) *said {
	x := &said{ended: make(chan struct{})}
	c.exchanges[name] = x
	c.order = append(c.order, name)
	return x
}

// send sends an HTTP request, and reads its answer while the next steps run.
func (c *conversation) send(t *testing.T, name, method, text string) *said {
	head, body, _ := strings.Cut("\n"+text, "\n\n")
	body = strings.TrimSuffix(body, "\n")
	if n, ok := strings.CutPrefix(body, "large "); ok {
		size, _ := strconv.Atoi(n)
		body = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", size) + `"}}`
	}
	x := c.add(name)
	ctx, cancel := context.WithCancel(t.Context())
	x.hang = cancel
	r, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(c.filled(body)))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	for l := range strings.Lines(strings.TrimPrefix(head, "\n")) {
		name, value, _ := strings.Cut(strings.TrimSpace(l), ":")
		if value = strings.TrimSpace(c.filled(value)); value == "none" {
			r.Header.Del(name)
		} else {
			r.Header.Set(name, value)
		}
	}
	go c.read(x, r)
	return x
}

func (c *conversation) read(x *said, r *http.Request) {
	defer close(x.ended)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		x.head = "no answer\n"
		return
	}
	defer resp.Body.Close()
	c.mu.Lock()
	if id := resp.Header.Get(mcp.HeaderSession); id != "" {
		c.session = id
	}
	c.mu.Unlock()
	x.mu.Lock()
	x.head = headOf(resp)
	x.mu.Unlock()
	stream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		l := lines.Text()
		x.mu.Lock()
		if id, ok := strings.CutPrefix(l, "id: "); ok {
			x.event = id
		}
		data, is := strings.CutPrefix(l, "data: ")
		switch {
		case strings.HasPrefix(l, "retry: "):
			x.messages = append(x.messages, l)
		case !stream && l != "":
			x.messages = append(x.messages, l)
		case is && data != "":
			c.learn(data)
			x.messages = append(x.messages, data)
		}
		if !stream {
			c.learn(l)
		}
		x.mu.Unlock()
	}
}

// headOf are the status and the headers of an answer that do not follow from how it is
// written.
func headOf(resp *http.Response) string {
	var b strings.Builder
	fmt.Fprintln(&b, resp.StatusCode)
	h := resp.Header.Clone()
	for _, name := range []string{"Date", "Content-Length", "Content-Type", "Connection", "X-Content-Type-Options"} {
		h.Del(name)
	}
	var names []string
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %s\n", name, h.Get(name))
	}
	return b.String()
}

// say writes lines to the host's standard input; its output is the exchange "out".
func (c *conversation) say(t *testing.T, text string) {
	if c.stdin == nil {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		c.stdin = inW
		x := c.add("out")
		go func() {
			_ = c.host.Serve(context.Background(), gate.Local(), inR, outW)
			outW.Close()
		}()
		go func() {
			defer close(x.ended)
			lines := bufio.NewScanner(outR)
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				x.mu.Lock()
				x.messages = append(x.messages, lines.Text())
				c.learn(lines.Text())
				x.mu.Unlock()
			}
		}()
	}
	if _, err := io.WriteString(c.stdin, c.filled(text)); err != nil {
		t.Fatal(err)
	}
}

func (c *conversation) close(t *testing.T) {
	if c.stdin != nil {
		c.stdin.Close()
		<-c.exchanges["out"].ended
	}
	for _, x := range c.exchanges {
		if x.hang != nil {
			x.hang()
		}
		<-x.ended
	}
}

var (
	taskID      = regexp.MustCompile(`"taskId":"([^"]+)"`)
	lastEventOf = regexp.MustCompile(`\$event\w+`)
)

func (c *conversation) learn(message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := taskID.FindStringSubmatch(message); m != nil && c.task == "" {
		c.task = m[1]
	}
}

// filled puts what the host has made up into what a client says: its session, its task,
// and the last event of an exchange.
func (c *conversation) filled(text string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text = strings.NewReplacer("$session", c.session, "$task", c.task).Replace(text)
	text = lastEventOf.ReplaceAllStringFunc(text, func(name string) string {
		x := c.exchanges[strings.TrimPrefix(name, "$event")]
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.event
	})
	if out := c.exchanges["out"]; out != nil && strings.Contains(text, "$mark") {
		out.mu.Lock()
		defer out.mu.Unlock()
		text = strings.ReplaceAll(text, "$mark", gate.MustDoc(out.messages[len(out.messages)-1]).Get("id").Text())
	}
	return text
}

var varies = []struct {
	is *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`"(createdAt|lastUpdatedAt)":"[^"]*"`), `"$1":"then"`},
	{regexp.MustCompile(`"record_id":"[^"]*"`), `"record_id":"r"`},
	{regexp.MustCompile(`"requestState":"[^"]*"`), `"requestState":"state"`},
	{regexp.MustCompile(`"(id|requestId)":"[A-Z2-7]{8}-(\d+)"`), `"$1":"mark-$2"`},
	{regexp.MustCompile(`(?m)^Mcp-Session-Id: .*$`), `Mcp-Session-Id: $$session`},
}

func (c *conversation) answer(name string) string {
	x := c.exchanges[name]
	text := x.head
	for _, m := range inOrder(x.messages) {
		text += m + "\n"
	}
	for _, v := range varies {
		text = v.is.ReplaceAllString(text, v.as)
	}
	if c.task != "" {
		text = strings.ReplaceAll(text, c.task, "$task")
	}
	return text
}

// inOrder sorts what says that lists have changed, which comes in any order.
func inOrder(messages []string) []string {
	messages = slices.Clone(messages)
	for from := 0; from < len(messages); from++ {
		to := from
		for to < len(messages) && strings.Contains(messages[to], "list_changed") {
			to++
		}
		slices.Sort(messages[from:to])
		from = to
	}
	return messages
}

// recorded returns the script with the actual answers: as the answer where none was recorded, and
// next to it where a different one was.
func (c *conversation) recorded(script []stage) []byte {
	var b bytes.Buffer
	had, why := make(map[string]string), make(map[string]string)
	for i, s := range script {
		if name, is := strings.CutSuffix(s.name, " answer"); is {
			had[name] = s.text
			continue
		}
		if name, is := strings.CutSuffix(s.name, " since"); is {
			why[name], _, _ = strings.Cut(s.text, "\n")
			continue
		}
		if i > 0 {
			fmt.Fprintf(&b, "-- %s --\n", s.name)
		}
		b.WriteString(s.text)
	}
	for _, name := range c.order {
		now := c.answer(name)
		then, recorded := had[name]
		if !recorded {
			then = now
		}
		fmt.Fprintf(&b, "-- %s answer --\n%s", name, then)
		if then != now {
			fmt.Fprintf(&b, "-- %s since --\n%s\n%s", name, cmp.Or(why[name], "because"), now)
		}
	}
	return b.Bytes()
}

func (c *conversation) check(t *testing.T, script []stage) {
	want := make(map[string]string)
	for _, s := range script {
		name, is := strings.CutSuffix(s.name, " answer")
		if since, now := strings.CutSuffix(s.name, " since"); now {
			why, text, _ := strings.Cut(s.text, "\n")
			if len(why) < len("because it is so") {
				t.Errorf("%s: it does not say why", s.name)
			}
			want["since "+since] = text
		} else if is {
			want[name] = s.text
		}
	}
	for _, name := range c.order {
		then, ok := want[name]
		if now, differs := want["since "+name]; differs {
			if now == then {
				t.Errorf("%s: nothing differs since", name)
			}
			then = now
		}
		if differs := diff.Diff(then, c.answer(name)); !ok || differs != "" {
			t.Errorf("%s, recorded: %v\n%s", name, ok, differs)
		}
	}
}

// said is what all have exchanged so far.
func (c *conversation) said() string {
	var b strings.Builder
	for _, name := range c.order {
		fmt.Fprintf(&b, "-- %s --\n%s", name, c.answer(name))
	}
	return b.String()
}
