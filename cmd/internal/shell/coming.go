package shell

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app/overview"
)

const (
	// SlowStart is how long a command waits in silence.
	SlowStart = time.Second
	// stillWaiting is how often a person reads that nothing has changed.
	stillWaiting = 5 * time.Second
	// lookEvery is how often the servers are looked at meanwhile.
	lookEvery = 200 * time.Millisecond
)

// Coming shows at a terminal how the servers come up, a line for each that is there or has failed, until stop is
// called, which waits for the last line. A start that is quick shows nothing.
func (c *Shell) Coming(status func() *overview.Status) (stop func()) {
	if c.JSON || !show.IsTerminal(c.Err) {
		return func() {}
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		began := time.Now()
		last, said := began, make(map[string]bool)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			if time.Since(began) < SlowStart {
				continue
			}
			lines, waited := coming(status().Servers, said)
			if len(lines) == 0 && len(waited) > 0 && (last == began || time.Since(last) >= stillWaiting) {
				lines = []string{"connecting " + strings.Join(waited, ", ") + " ..."}
			}
			for _, line := range lines {
				fmt.Fprintln(c.Err, show.Visible(line))
				last = time.Now()
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}

// coming returns a line for each server that has come up or failed and was not said yet, and those that are waited for.
func coming(servers []status.Server, said map[string]bool) (lines, waited []string) {
	for _, s := range servers {
		switch {
		case s.Phase == status.Connecting || s.Phase == status.Starting:
			waited = append(waited, s.Server)
		case !said[s.Server]:
			said[s.Server] = true
			line := fmt.Sprintf("%s: %s, %s", s.Server, s.Phase, show.Plural(s.Tools, "tool"))
			if s.Error != "" {
				line = fmt.Sprintf("%s: %s: %s", s.Server, s.Phase, s.Error)
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines, waited
}
