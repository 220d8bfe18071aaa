package dial_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/dial"
)

func TestQuotas(t *testing.T) {
	tests := map[string]struct {
		limits dial.Limits
		r      dial.Request // its URL is a path
		times  int          // before the limit
		limit  dial.Limit
	}{
		"requests":                    {dial.Limits{Requests: 3}, get("/"), 3, dial.LimitRequests},
		"requests by default":         {dial.Limits{}, get("/"), 32, dial.LimitRequests},
		"no requests":                 {dial.Limits{Requests: -1}, get("/"), 0, dial.LimitRequests},
		"requests with redirects":     {dial.Limits{Requests: 5}, get("/redirect"), 2, dial.LimitRequests},
		"bytes of bodies sent":        {dial.Limits{RequestBytes: 25_000}, dial.Request{Method: "POST", URL: "/", Body: make([]byte, 10_000)}, 2, dial.LimitRequestBytes},
		"bytes of headers sent":       {dial.Limits{RequestBytes: 25_000}, with("/", "X", strings.Repeat("a", 10_000)), 2, dial.LimitRequestBytes},
		"bytes of URLs sent":          {dial.Limits{RequestBytes: 18_000}, get("/?" + strings.Repeat("a", 8000)), 2, dial.LimitRequestBytes},
		"bytes of redirected bodies":  {dial.Limits{RequestBytes: 25_000}, dial.Request{Method: "POST", URL: "/redirect", Body: make([]byte, 10_000)}, 1, dial.LimitRequestBytes},
		"bytes of bodies received":    {dial.Limits{ResponseBytes: 25_000}, get("/body"), 2, dial.LimitResponseBytes},
		"bytes of headers received":   {dial.Limits{ResponseBytes: 25_000}, get("/header"), 2, dial.LimitResponseBytes},
		"an endless body":             {dial.Limits{}, get("/endless"), 0, dial.LimitResponseBytes},
		"a header beyond all measure": {dial.Limits{}, get("/giant"), 0, ""},
		"an endless stream of 1xx":    {dial.Limits{}, get("/early"), 0, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			origin := w.serve("api.example", generous)
			scope := open(t, origin)
			scope.Limits = tt.limits
			e := w.client().Egress(scope)
			tt.r.URL = origin + tt.r.URL
			for range tt.times {
				mustDo(t, e, tt.r)
			}
			_, err := e.Do(t.Context(), tt.r)
			wantFailed(t, err, tt.limit)
		})
	}
}

func generous(w http.ResponseWriter, r *http.Request) {
	chunk := strings.Repeat("a", 10_000)
	switch r.URL.Path {
	case "/redirect":
		to("/")(w, r)
	case "/body":
		io.WriteString(w, chunk)
	case "/header":
		w.Header().Set("X-Long", chunk)
	case "/giant":
		for i := range 8 {
			w.Header().Set(fmt.Sprint("X-", i), chunk)
		}
	case "/early":
		for r.Context().Err() == nil {
			w.Header().Set("Link", chunk)
			w.WriteHeader(103)
		}
	case "/endless":
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}
}

func TestTimeIsOfTheWholeCall(t *testing.T) {
	w := newWorld(t)
	origin := w.serve("api.example", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent" {
			<-r.Context().Done()
			return
		}
		for r.Context().Err() == nil { // a byte at a time, so that no single read is slow
			if _, err := io.WriteString(w, "a"); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	})
	for _, path := range []string{"/drip", "/silent"} {
		t.Run(path, func(t *testing.T) {
			scope := open(t, origin)
			scope.Limits.Timeout = 100 * time.Millisecond
			e := w.client().Egress(scope)
			_, err := e.Do(t.Context(), get(origin+path))
			wantFailed(t, err, dial.LimitTimeout)
			dialled := len(w.dialled)
			_, err = e.Do(t.Context(), get(origin)) // the time of the call is over
			wantFailed(t, err, dial.LimitTimeout)
			if len(w.dialled) > dialled {
				t.Error("a connection was made after the end")
			}
		})
	}
}

func TestHammer(t *testing.T) {
	w := newWorld(t)
	handler, hits := counted(says("hello"))
	origin := w.serve("api.example", handler)
	scope := open(t, origin)
	scope.Limits.Requests = 20
	scope.Secrets = []dial.Secret{newSecret(t, "API", randomText(20), origin)}
	e := w.client().Egress(scope)
	var ok atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				if _, err := e.Do(t.Context(), with(origin, "X", "{{secret:API}}")); err == nil {
					ok.Add(1)
				}
			}
		})
	}
	all.Wait()
	if ok.Load() != 20 || hits.Load() != 20 {
		t.Errorf("%d answers, %d requests, want 20", ok.Load(), hits.Load())
	}
}
