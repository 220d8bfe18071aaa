package pages

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/lock"
)

// visible shows a text, of any type whose kind is string. Anything else that reaches a page by
// mistake is an error: a person cannot read it.
func visible(v any) (string, error) {
	if s := reflect.ValueOf(v); s.Kind() == reflect.String {
		return escaped.Text(s.String()), nil
	}
	return "", fmt.Errorf("internal error: a page shows a %T as text", v)
}

func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

func left(until time.Time) string { return max(0, time.Until(until)).Round(time.Second).String() }

func took(us int64) string {
	return (time.Duration(us) * time.Microsecond).Round(10 * time.Microsecond).String()
}

// ago is how long ago something was, in seconds.
func ago(seconds float64) string {
	return (time.Duration(seconds * float64(time.Second))).Round(time.Second).String() + " ago"
}

// effect returns one word for the outcome of a call, for the style sheet.
func effect(code string) string {
	switch {
	case code == codes.OK:
		return "ok"
	case strings.HasPrefix(code, "refused_"):
		return "refused"
	default:
		return "failed"
	}
}

// state returns one word for the state of a server, for the style sheet.
func state(p status.Phase) string {
	switch p {
	case status.Ready:
		return "ok"
	case status.Faulted:
		return "refused"
	default:
		return "failed"
	}
}

// pausing is a server whose calls can be paused, or are.
type pausing struct {
	Server string
	Paused bool
}

func pausingOf(server string, paused []string) pausing {
	return pausing{server, slices.Contains(paused, server)}
}

// words divides two versions of a text into what both begin and end with, in whole words, and
// what is between.
type words struct{ Before, Old, New, After string }

func wordsOf(c lock.Reviewed) words {
	a, b := strings.SplitAfter(c.Old, " "), strings.SplitAfter(c.New, " ")
	head, tail := 0, 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	middle := func(s []string) string { return strings.Join(s[head:len(s)-tail], "") }
	return words{strings.Join(a[:head], ""), middle(a), middle(b), strings.Join(a[len(a)-tail:], "")}
}
