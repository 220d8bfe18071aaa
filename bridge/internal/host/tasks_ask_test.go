package host_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/transport"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
)

const canAnswer = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"9"}}}`

// A talk is with a client that has a session, and that is asked something while it waits for an answer.
// The answer to what it is asked is what person says; "" hangs up.
type talk func(t *testing.T, msg string, person func(gate.Doc) string) gate.Doc

// answeringOver connects such clients.
var answeringOver = map[string]func(*testing.T, *rig.Fixture) talk{
	"HTTP": func(t *testing.T, x *rig.Fixture) talk {
		session := rig.OpenSessionWith(t, x.URL, canAnswer)
		return func(t *testing.T, msg string, person func(gate.Doc) string) (answer gate.Doc) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp, err := rig.Post(ctx, x.URL, rig.Old, session, msg)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
				return gate.MustDoc(rig.AnswerOf(t, resp))
			}
			_ = rig.ReadStream(resp.Body, func(data []byte) (bool, error) {
				if len(data) == 0 {
					return true, nil
				}
				m := gate.MustDoc(string(data))
				if m.Get("method").IsZero() {
					answer = m
					return false, nil
				}
				said := person(m)
				if said == "" || m.Get("id").IsZero() {
					return said != "", nil
				}
				back, err := rig.Post(t.Context(), x.URL, rig.Old, session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.Get("id"), said))
				if err != nil {
					return false, err
				}
				return true, back.Body.Close()
			})
			return answer
		}
	},
	"stdio": func(t *testing.T, x *rig.Fixture) talk {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = x.Host.Serve(context.WithoutCancel(t.Context()), gate.Local(), inR, outW)
			outW.Close()
		}()
		t.Cleanup(func() {
			inW.Close()
			go io.Copy(io.Discard, outR)
			<-served
		})
		lines := bufio.NewReader(outR)
		say := func(msg string) {
			if _, err := io.WriteString(inW, msg+"\n"); err != nil {
				t.Error(err)
			}
		}
		ask := func(t *testing.T, msg string, person func(gate.Doc) string) gate.Doc {
			t.Helper()
			say(msg)
			for {
				l, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				m := gate.MustDoc(l)
				if m.Get("method").IsZero() {
					return m
				}
				switch said := person(m); {
				case said == "":
					say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, gate.MustDoc(msg).Get("id")))
				case !m.Get("id").IsZero():
					say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.Get("id"), said))
				}
			}
		}
		ask(t, canAnswer, func(gate.Doc) string { return "-" })
		say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return ask
	},
}

// TestTaskAsksOnTheStreamOfItsResult: what a server asks during a task of a client with a
// session comes with the request for the result (MCP 2025-11-25, basic/utilities/tasks,
// "Input Required Status"); a client whose stream breaks is asked again.
func TestTaskAsksOnTheStreamOfItsResult(t *testing.T) {
	for way, dial := range answeringOver {
		t.Run(way, func(t *testing.T) {
			release := make(chan struct{})
			close(release)
			x, _ := newTaskFixtureWith(t, host.Config{}, tasked(release)...)
			ask := dial(t, x)
			nobody := func(m gate.Doc) string {
				if !m.Get("id").IsZero() {
					t.Errorf("the client is asked %s", m)
				}
				return "-"
			}
			id := ask(t, rig.Request(rig.Old, "1", "tools/call", `"name":"local__asking","arguments":{},"task":{}`), nobody).At("/result/task/taskId").String()
			rig.Within(t, "it asks", func() bool {
				return ask(t, rig.Request(rig.Old, "2", "tasks/get", `"taskId":`+id), nobody).At("/result/status").Text() == "input_required"
			})
			if got := ask(t, rig.Request(rig.Old, "3", "tasks/list", ""), nobody).At("/result/tasks/0/status").Text(); got != "input_required" {
				t.Errorf("it is listed as %s", got)
			}
			broke := false
			ask(t, rig.Request(rig.Old, "4", "tasks/result", `"taskId":`+id), func(m gate.Doc) string { broke = broke || !m.Get("id").IsZero(); return "" })
			if !broke {
				t.Error("the client was asked nothing")
			}
			var asked []string
			res := ask(t, rig.Request(rig.Old, "5", "tasks/result", `"taskId":`+id), func(m gate.Doc) string {
				if m.Get("id").IsZero() {
					return "-" // that the first request is withdrawn
				}
				asked = append(asked, m.Get("method").Text()+" "+m.At("/params/message").Text()+" "+m.At("/params/_meta/io.modelcontextprotocol~1related-task/taskId").String())
				return fmt.Sprintf(`"result":{"action":"accept","content":{"name":"Ada%d"}}`, len(asked))
			})
			if diff := cmp.Diff([]string{"elicitation/create Who are you? " + id, "elicitation/create Who are you? " + id}, asked); diff != "" {
				t.Error(diff)
			}
			if got := res.At("/result/content/0/text").Text(); got != "Ada1 Ada2" {
				t.Errorf("the result is %s", res)
			}
		})
	}
}

// A client that refuses to answer has answered; one that can be asked other things than the
// one that made the call is not asked for it.
func TestTaskWhoseClientRefuses(t *testing.T) {
	release := make(chan struct{})
	close(release)
	x, _ := newTaskFixtureWith(t, host.Config{Config: dispatch.Config{ParkIdle: 10 * time.Second}}, tasked(release)...)
	ask := answeringOver["HTTP"](t, x)
	quiet := func(gate.Doc) string { return "-" }
	id := ask(t, rig.Request(rig.Old, "1", "tools/call", `"name":"local__asking","arguments":{},"task":{}`), quiet).At("/result/task/taskId").String()
	other := rig.OpenSessionWith(t, x.URL, strings.Replace(canAnswer, "elicitation", "sampling", 1))
	// The stream begins while it waits, and with what it is asked if it is.
	waits, err := rig.Post(t.Context(), x.URL, rig.Old, other, rig.Request(rig.Old, "1", "tasks/result", `"taskId":`+id))
	if err != nil {
		t.Fatal(err)
	}
	res := ask(t, rig.Request(rig.Old, "2", "tasks/result", `"taskId":`+id), func(m gate.Doc) string {
		return `"error":{"code":-1,"message":"not before tea"}`
	})
	if got := res.At("/result/content/0/text").Text(); !strings.Contains(got, "not before tea") {
		t.Errorf("the result is %s", res)
	}
	if got := rig.AnswerOf(t, waits); !strings.Contains(got, "not before tea") {
		t.Errorf("another session of the same principal got %q", got)
	}
}

// TestListenToTasks: a client without a session gets the states of its own tasks that it names, and
// of no others.
func TestListenToTasks(t *testing.T) {
	const listens = `"notifications":{"taskIds":[%s,"none",%[1]s]}`
	for name, listen := range map[string]func(*testing.T, *rig.Fixture, string) <-chan string{
		"HTTP":  listenHTTP,
		"stdio": listenStdio,
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			let := sync.OnceFunc(func() { close(release) })
			defer let()
			x, _ := newTaskFixtureWith(t, host.Config{}, tasked(release)...)
			wire := rig.DialHTTP(t, x, rig.Newest)
			id := gate.MustDoc(wire(sessionless(1, "tools/call", `"name":"local__asking","arguments":{}`, knowsTasks))).At("/result/taskId").String()
			told := listen(t, x, sessionless(7, "subscriptions/listen", fmt.Sprintf(listens, id), knowsTasks))
			ack := gate.MustDoc(hear(t, told))
			if ack.Get("method").Text() != "notifications/subscriptions/acknowledged" || ack.At("/params/notifications/taskIds").String() != "["+id+"]" {
				t.Errorf("acknowledged was %s", ack)
			}
			// What has passed already when it would be told is not told.
			next := func(status string) gate.Doc {
				t.Helper()
				for {
					got := gate.MustDoc(hear(t, told))
					params := got.Get("params")
					if got.Get("method").Text() != "notifications/tasks" || params.Get("taskId").String() != id || params.Get("_meta").String() != `{"io.modelcontextprotocol/subscriptionId":7}` {
						t.Fatalf("told was %s", got)
					}
					switch params.Get("status").Text() {
					case status:
						return params
					case "working":
					default:
						t.Fatalf("told was %s, want that it is %s", got, status)
					}
				}
			}
			next("working")
			let()
			for i := 1; i <= 2; i++ {
				key := fmt.Sprint("ask-", i)
				if next("input_required").At("/inputRequests/" + key).IsZero() {
					t.Fatal("it does not say what it asks")
				}
				wire(sessionless(2, "tasks/update", `"taskId":`+id+taskAnswers(key, "Ada"), knowsTasks))
			}
			if last := next("completed"); last.At("/result/content/0/text").Text() != "Ada Ada" {
				t.Errorf("in the end told was %s", last)
			}
		})
	}
}

// One stream tells of 100 tasks at most: those that are named first.
func TestListenToManyTasks(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	x, _ := newTaskFixtureWith(t, host.Config{}, tasked(release)...)
	id := gate.MustDoc(rig.DialHTTP(t, x, rig.Newest)(sessionless(1, "tools/call", `"name":"local__tasked","arguments":{}`, knowsTasks))).At("/result/taskId").String()
	for before, want := range map[int]string{99: "[" + id + "]", 100: "[]"} {
		names := ""
		for i := range before {
			names += fmt.Sprintf(`"none %d",`, i)
		}
		ack := gate.MustDoc(hear(t, listenHTTP(t, x, sessionless(7, "subscriptions/listen", `"notifications":{"taskIds":[`+names+id+`]}`, knowsTasks))))
		if got := ack.At("/params/notifications/taskIds").String(); got != want {
			t.Errorf("behind %d others: %s, want %s", before, got, want)
		}
	}
}

// hear returns the next message to a client.
func hear(t *testing.T, told <-chan string) string {
	t.Helper()
	select {
	case msg, ok := <-told:
		if !ok {
			t.Fatal("the stream has ended")
		}
		return msg
	case <-time.After(time.Minute):
		t.Fatal("nothing more is told")
		return ""
	}
}

func listenHTTP(t *testing.T, x *rig.Fixture, msg string) <-chan string {
	resp, err := rig.Post(t.Context(), x.URL, rig.Newest, "", msg)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 100)
	go func() {
		defer resp.Body.Close()
		_ = rig.ReadStream(resp.Body, func(data []byte) (bool, error) { told <- string(data); return true, nil })
		close(told)
	}()
	return told
}

func listenStdio(t *testing.T, x *rig.Fixture, msg string) <-chan string {
	return serveLines(t, x, gate.Local(), msg)
}

// serveLines serves a client on stdio that sends some messages, and returns the messages that it
// gets.
func serveLines(t *testing.T, x *rig.Fixture, who *gate.Principal, msgs ...string) <-chan string {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() {
		_ = x.Host.Serve(context.WithoutCancel(t.Context()), who, inR, outW)
		outW.Close()
	}()
	told := make(chan string, 100)
	go func() {
		lines := bufio.NewScanner(outR)
		for lines.Scan() {
			told <- lines.Text()
		}
		close(told)
	}()
	t.Cleanup(func() {
		inW.Close()
		for range told { // until it has ended
		}
	})
	for _, msg := range msgs {
		if _, err := io.WriteString(inW, msg+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	return told
}

// To all but the principal whose call it was a task does not exist, nor can it be listened
// to.
func TestTaskOfAnotherPrincipal(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	x, _ := newTaskFixtureWith(t, host.Config{}, tasked(release)...)
	id := gate.MustDoc(rig.DialHTTP(t, x, rig.Newest)(sessionless(1, "tools/call", `"name":"local__tasked","arguments":{}`, knowsTasks))).At("/result/taskId").String()
	bob := gate.Local()
	bob.ID = "bob"
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		got := gate.MustDoc(<-serveLines(t, x, bob, sessionless(2, method, `"inputResponses":{},"taskId":`+id, knowsTasks)))
		if got.At("/error/message").Text() != "there is no such task" {
			t.Errorf("%s: %s", method, got)
		}
	}
	got := gate.MustDoc(<-serveLines(t, x, bob, sessionless(3, "subscriptions/listen", `"notifications":{"taskIds":[`+id+`]}`, knowsTasks)))
	if got.At("/params/notifications/taskIds").String() != "[]" {
		t.Errorf("acknowledged is %s", got)
	}
	if len(x.Records.Done()) != 0 {
		t.Errorf("somebody else has ended the call: %q", x.Records.Done())
	}
}

// TestTaskOfAToolThatIsNotOffered: who is offered one group learns nothing of the calls
// of the tools of another.
func TestTaskOfAToolThatIsNotOffered(t *testing.T) {
	grouped := rig.Echo(`"name":"grouped"`)
	grouped.Groups = []string{"a"}
	x, _ := newTaskFixtureWith(t, host.Config{Access: transport.Access{Group: func(name string) bool { return name == "a" || name == "b" }}}, grouped)
	in := func(group string) func(method, params string) gate.Doc {
		url := x.URL
		if group != "" {
			url += "/group/" + group
		}
		session := rig.OpenSession(t, url)
		return func(method, params string) gate.Doc {
			resp, err := rig.Post(t.Context(), url, rig.Old, session, rig.Request(rig.Old, "1", method, params))
			if err != nil {
				t.Fatal(err)
			}
			return gate.MustDoc(rig.AnswerOf(t, resp))
		}
	}
	a, b, all := in("a"), in("b"), in("")
	id := a("tools/call", `"name":"local__grouped","arguments":{},"task":{}`).At("/result/task/taskId").String()
	a("tasks/result", `"taskId":`+id)
	for name, ask := range map[string]func(string, string) gate.Doc{"the same group": a, "no group": all} {
		if got := ask("tasks/get", `"taskId":`+id).At("/result/status").Text(); got != "completed" {
			t.Errorf("at %s it is %q", name, got)
		}
		if got := ask("tasks/list", "").At("/result/tasks/0/taskId").String(); got != id {
			t.Errorf("at %s listed is %s", name, got)
		}
	}
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		if got := b(method, `"taskId":`+id); got.At("/error/message").Text() != "there is no such task" {
			t.Errorf("%s at another group: %s", method, got)
		}
	}
	if got := b("tasks/list", "").At("/result/tasks").String(); got != "[]" {
		t.Errorf("at another group listed are %s", got)
	}
	got := rig.PostWith(t, x.URL+"/group/b", sessionless(1, "tasks/get", `"taskId":`+id, knowsTasks), func(map[string][]string) {})
	if got.At("/error/message").Text() != "there is no such task" {
		t.Errorf("at another group, without a session: %s", got)
	}
}
