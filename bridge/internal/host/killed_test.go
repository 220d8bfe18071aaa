package host_test

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
)

// TestKilledClient: a client whose input has ended and that no longer reads is gone, with its calls.
func TestKilledClient(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system does not say that a reader is gone")
	}
	x := rig.NewFixture(t)
	x.Host.Change(host.Terms{Version: "1", Drain: time.Hour})
	inR, inW := io.Pipe()
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer outW.Close()
	done := make(chan error)
	go func() { done <- x.Host.Serve(t.Context(), gate.Local(), inR, outW) }()
	fmt.Fprintln(inW, rig.Hello)
	fmt.Fprintln(inW, rig.Request(rig.Old, "9", "tools/call", `"name":"local__block"`))
	<-x.Begun
	outR.Close()
	inW.Close()
	if err := <-done; err != nil { // not after an hour
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"local__block cancelled"}, x.Records.Done()); diff != "" {
		t.Error(diff)
	}
}
