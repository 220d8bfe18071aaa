package respond

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilentStreamsLive: a stream on which nothing happens shows each 15 seconds that it lives, and
// nothing once it has ended.
func TestSilentStreamsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		k := NewSink(w)
		k.Begin("")
		go k.Run()
		time.Sleep(time.Minute + time.Second)
		k.Write(AppendEvent(nil, "message", "", []byte("{}")))
		k.End()
		k.Wait()
		time.Sleep(time.Minute)
		if got, want := w.Body.String(), strings.Repeat(":\n\n", 4)+"event: message\ndata: {}\n\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
