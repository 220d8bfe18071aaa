package dial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Limits bound all requests of one call together; only Redirects counts for each
// request alone. Zero means the default, a negative number means none.
type Limits struct {
	Requests      int           // requests sent, redirects included; default 32
	RequestBytes  int64         // URLs, headers and bodies sent; default 1 MiB
	ResponseBytes int64         // headers and bodies received; default 4 MiB
	Timeout       time.Duration // wall time since the first request began; default 30 s
	Redirects     int           // that one request follows, default 5; with none, the redirect itself is the answer
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Requests:      orDefault(l.Requests, 32),
		RequestBytes:  orDefault(l.RequestBytes, 1<<20),
		ResponseBytes: orDefault(l.ResponseBytes, 4<<20),
		Timeout:       orDefault(l.Timeout, 30*time.Second),
		Redirects:     orDefault(l.Redirects, 5),
	}
}

func orDefault[N int | int64 | time.Duration](n, normal N) N {
	if n == 0 {
		return normal
	}
	return max(n, 0)
}

// exceeded is the error of a limit.
type exceeded struct {
	limit Limit
	text  string
}

func (e *exceeded) Error() string { return e.text }

// A quota is what is left of the limits of a call.
type quota struct {
	limits Limits // with defaults

	mu       sync.Mutex
	requests int
	sent     int64
	received int64
	deadline time.Time // zero before the first request
}

// within returns ctx with the end of the call's time.
func (q *quota) within(ctx context.Context) (context.Context, context.CancelFunc) {
	q.mu.Lock()
	if q.deadline.IsZero() {
		q.deadline = time.Now().Add(q.limits.Timeout)
	}
	end := q.deadline
	q.mu.Unlock()
	return context.WithDeadlineCause(ctx, end, &exceeded{LimitTimeout, fmt.Sprintf("the call's requests took longer than %v", q.limits.Timeout)})
}

// send takes one request of n bytes.
func (q *quota) send(n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.requests >= q.limits.Requests {
		return &exceeded{LimitRequests, fmt.Sprintf("the call made %d requests already, which is its limit", q.limits.Requests)}
	}
	if n > q.limits.RequestBytes-q.sent {
		return &exceeded{LimitRequestBytes, fmt.Sprintf("the call's requests have more than %d bytes", q.limits.RequestBytes)}
	}
	q.requests, q.sent = q.requests+1, q.sent+n
	return nil
}

// receive takes n bytes of an answer.
func (q *quota) receive(n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n > q.limits.ResponseBytes-q.received {
		return &exceeded{LimitResponseBytes, fmt.Sprintf("the answers to the call have more than %d bytes", q.limits.ResponseBytes)}
	}
	q.received += n
	return nil
}

// A meter reads from r at the expense of a quota. It ends with an error, not with
// a part, when nothing is left.
type meter struct {
	r     io.Reader
	quota *quota
}

func (m meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if over := m.quota.receive(int64(n)); over != nil {
		return 0, over
	}
	return n, err
}

// exceededLimit returns the limit that err or the end of ctx is about.
func exceededLimit(ctx context.Context, err error) *exceeded {
	var e *exceeded
	if errors.As(err, &e) || errors.As(context.Cause(ctx), &e) {
		return e
	}
	return nil
}
