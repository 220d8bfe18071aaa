package wire

import (
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// TestEcho: a credential that a server repeats is not in its answer, wherever reads of the body
// end; what only looks like its beginning stays, and is not late.
func TestEcho(t *testing.T) {
	const secret = "aabaabaacaab"
	random := seed.Rand(t)
	for range 2000 {
		var text strings.Builder
		for range random.IntN(20) {
			text.WriteString([]string{"a", "aab", "aabaa", "aabaabaacaa", secret, "c", "\n\n", "Bearer " + secret}[random.IntN(8)])
		}
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "halves": iotest.HalfReader, "with the end": iotest.DataErrReader,
		} {
			resp := &http.Response{Header: http.Header{}, Body: io.NopCloser(wrap(strings.NewReader(text.String())))}
			withoutEcho(resp, "Bearer "+secret)
			got, err := io.ReadAll(resp.Body)
			if want := strings.ReplaceAll(text.String(), secret, redacted); err != nil || string(got) != want {
				t.Fatalf("%s: %q becomes %q, %v; want %q", name, text.String(), got, err, want)
			}
		}
	}
	r, w := io.Pipe()
	defer w.Close()
	resp := &http.Response{Header: http.Header{}, Body: r}
	withoutEcho(resp, "Bearer "+secret)
	go w.Write([]byte("data: aabx\n\n"))
	event := make([]byte, 100)
	if n, err := resp.Body.Read(event); string(event[:n]) != "data: aabx\n\n" || err != nil {
		t.Errorf("an event is held back: %q, %v", event[:n], err)
	}
}

// Also a credential that the configuration has for a server is not in its answers, in whatever
// header; what other headers say stays.
func TestEchoOfAFixedCredential(t *testing.T) {
	secret := rand.Text()
	for name, tt := range map[string]struct{ value, want string }{
		"Authorization": {"Bearer " + secret, "Bearer " + redacted},
		"X-Api-Key":     {secret, redacted},
		"X-Workspace":   {secret, secret},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Header.Get(name))
		}))
		defer server.Close()
		c, err := NewHTTPClient(Remote{URL: server.URL, Headers: http.Header{name: {tt.value}}, DialContext: new(net.Dialer).DialContext})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseIdleConnections()
		resp, err := c.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != tt.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
