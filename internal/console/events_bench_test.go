//go:build unix

package console

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkEvents makes 500 calls a second while so many pages of calls are live, and reports which
// part of a core that takes: the difference to no page is the cost of the pages. A page that gets less
// than everything, or in another order, fails.
func BenchmarkEvents(b *testing.B) {
	for _, pages := range []int{0, 1, 4} {
		b.Run(fmt.Sprintf("pages=%d", pages), func(b *testing.B) {
			d := open(b, "policy: {packs: []}\n")
			server := httptest.NewServer(d.c)
			b.Cleanup(server.Close) // after its readers have gone
			var told []chan uint64
			for range pages {
				told = append(told, live(b, d, server.URL))
			}
			pace := time.NewTicker(time.Second / 500)
			defer pace.Stop()
			before, calls := used(b), 0
			for b.Loop() {
				<-pace.C
				_ = d.call("none__such", "{}") // refused, and recorded: the least that a call can cost
				calls++
			}
			for _, numbers := range told {
				last := uint64(0)
				for range calls {
					select {
					case n := <-numbers:
						if last != 0 && n != last+1 {
							b.Fatalf("record %d came after %d", n, last)
						}
						last = n
					case <-time.After(time.Minute):
						b.Fatalf("nothing came after record %d", last)
					}
				}
			}
			b.ReportMetric((used(b)-before).Seconds()/float64(calls)*500, "cores/500calls/s")
		})
	}
}

// live reads events as a page of calls does, and returns the numbers of the records in them.
func live(b *testing.B, d *desk, url string) chan uint64 {
	ctx, cancel := context.WithCancel(b.Context())
	b.Cleanup(cancel)
	r, _ := http.NewRequestWithContext(ctx, "GET", url+"/api/v1/events", nil)
	d.signed(r)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	lines.Scan() // the comment at the beginning: it follows the log from here on
	numbers := make(chan uint64, 1<<20)
	go func() {
		for lines.Scan() {
			if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				n, _ := strconv.ParseUint(id, 10, 64)
				numbers <- n
			}
		}
	}()
	return numbers
}

// used is the time of processors that this process has had.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
