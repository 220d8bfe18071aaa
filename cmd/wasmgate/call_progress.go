package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app/calls"
)

// progressEvery is how often at most a terminal shows how far a call is.
const progressEvery = 100 * time.Millisecond

// maxProgress is the width of what is said of it, in characters.
const maxProgress = 70

// progress returns a function that shows on one line of the terminal how far a call is, and one
// that removes the line again. Where no person looks, nothing is shown.
func (c callCommands) progress() (draw func(calls.Progress), end func()) {
	if c.JSON || !show.IsTerminal(c.Err) {
		return nil, func() {}
	}
	var last time.Time
	draw = func(p calls.Progress) {
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			fmt.Fprint(c.Err, "\r\x1b[K"+progressLine(p))
		}
	}
	return draw, func() {
		if !last.IsZero() {
			fmt.Fprint(c.Err, "\r\x1b[K")
		}
	}
}

// progressLine says how far a call is.
func progressLine(p calls.Progress) string {
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	line := number(p.Done)
	if p.Total > 0 {
		line = fmt.Sprintf("%s of %s (%.0f %%)", number(p.Done), number(p.Total), min(100*p.Done/p.Total, 100))
	}
	return show.Visible(show.Short(strings.TrimSuffix(line+" "+p.Message, " "), maxProgress))
}
