package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/inquiry"
)

func TestInquiryText(t *testing.T) {
	q := question()
	q.Call.Who.ID = "al\x1bice"
	q.Call.Who.Tenant = "acme"
	q.Call.Args = gate.MustDoc("{\"to\":\"a\u202eb\u200b\", \n\"tag\":\"\U000e0041\",\"plain\":\"größe\",\"list\":[1,{\"a/b\":null}],\"none\":{}}")
	q.Session.Labels = gate.NewLabels("private", "untrusted")
	want := `May acme/al\x1bice call read of server files?
- /to: "a\u202eb\u200b"
- /tag: "\U000e0041"
- /plain: "größe"
- /list/0: 1
- /list/1/a~1b: null
- /none: {}

Why you are asked: because
The session has read: private, untrusted`
	if diff := cmp.Diff(want, q.Inquiry().Text()); diff != "" {
		t.Error(diff)
	}

	q.Call.Args, q.Session = gate.MustDoc(`{}`), gate.Session{Top: true}
	if text := q.Inquiry().Text(); !strings.Contains(text, "\n- no arguments\n") || !strings.Contains(text, "has read: more than could be kept") {
		t.Error(text)
	}
}

// No argument disappears: a value that is too long shows both ends, its size and its digest, and
// arguments that are too many are named.
func TestInquiryNamesWhatItDoesNotShow(t *testing.T) {
	q := question()
	q.Call.Args = gate.MustDoc(`{"text":"` + strings.Repeat("a", 10_000) + `the end"}`)
	one := q.Inquiry().Text()
	q.Call.Args = gate.MustDoc(`{"text":"` + strings.Repeat("a", 5_000) + "b" + strings.Repeat("a", 4_999) + `the end"}`)
	other := q.Inquiry().Text()
	if len(one) > 1000 || !strings.Contains(one, `the end" (SHORTENED: 10009 bytes, sha256 `) {
		t.Error(one)
	}
	if one == other {
		t.Error("two long values are shown alike")
	}

	var args []string
	for i := range 200 {
		args = append(args, fmt.Sprintf(`"padding%d": "x"`, i))
	}
	args = append(args[:60:60], append([]string{`"bcc": "attacker@evil.example"`}, args[60:]...)...)
	q.Call.Args = gate.MustDoc("{" + strings.Join(args, ",") + "}")
	text := q.Inquiry().Text()
	if len(text) > 8000 || !strings.Contains(text, "- NOT SHOWN: 161 more arguments, ") || !strings.Contains(text, "/bcc") || !strings.Contains(text, " and 61 others") {
		t.Error(text)
	}
}

// An inquiry of several calls shows all of them.
func TestInquiryOfCalls(t *testing.T) {
	i := inquiry.Inquiry{Caller: "alice", Calls: []inquiry.Call{{Server: "mail", Tool: "send"}, {Server: "files", Tool: "read", Arguments: []inquiry.Line{{At: "/path", Value: `"/a"`}}}}}
	want := "May alice make these 2 calls, each once?\n1. Call send of server mail\n- no arguments\n\n2. Call read of server files\n- /path: \"/a\"\n\nThe session has read: nothing that is labelled"
	if diff := cmp.Diff(want, i.Text()); diff != "" {
		t.Error(diff)
	}
}
