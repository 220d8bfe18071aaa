package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
)

// An Endpoint is where messages of OTLP go over HTTP (OpenTelemetry Protocol, OTLP/HTTP).
type Endpoint struct {
	URL     string // of the signal, such as https://otel:4318/v1/traces
	Headers map[string]string
	Timeout time.Duration // of one request
	Gzip    bool
	Client  *http.Client
}

const (
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 64 << 10
	// firstPause is waited after the first failure, twice that after the next, up to
	// maxPause.
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// A SendError says that an endpoint has not taken a message.
type SendError struct {
	Status int           // of HTTP; 0 if there was no answer
	After  time.Duration // that the endpoint asks for before the next try
	Err    error         // why there was no answer
}

func (e *SendError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("it answered with status %d", e.Status)
}

func (e *SendError) Unwrap() error { return e.Err }

// Again reports whether the same message may be taken later (OTLP/HTTP, "Retryable
// Response Codes").
func (e *SendError) Again() bool {
	switch e.Status {
	case 0, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// Send sends a message once. The error is a [*SendError], or the message cannot be written.
func (e *Endpoint) Send(ctx context.Context, m proto.Message) error {
	body, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return e.Post(ctx, "application/x-protobuf", body)
}

// Post sends a body once. The error is a [*SendError].
func (e *Endpoint) Post(ctx context.Context, contentType string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	if e.Gzip {
		body = zipped(body)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(body))
	if err != nil {
		return &SendError{Err: err}
	}
	for name, value := range e.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", contentType)
	if e.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := e.Client.Do(req)
	if err != nil {
		return &SendError{Err: err}
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer)) // so that the connection is used again
	if res.StatusCode/100 == 2 {
		return nil
	}
	failure := &SendError{Status: res.StatusCode}
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
		failure.After = min(time.Duration(s)*time.Second, time.Hour)
	}
	return failure
}

func zipped(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(body) // a buffer takes all
	_ = z.Close()
	return b.Bytes()
}

// Deliver sends until the message is taken, or cannot be, or ctx ends. Failed, if not nil, is called
// with each error after which Deliver goes on.
func Deliver(ctx context.Context, send func(context.Context) error, failed func(error)) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := send(ctx)
		var refused *SendError
		if err == nil || !errors.As(err, &refused) || !refused.Again() || ctx.Err() != nil {
			return err
		}
		if failed != nil {
			failed(err)
		}
		wait := max(refused.After, pause/2+rand.N(pause/2)) // not all gateways at once
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// NoRedirects makes a client follow no redirects: data are sent only to the address that the operator
// has named.
func NoRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
