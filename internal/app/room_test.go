package app_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
)

var processors = runtime.GOMAXPROCS(0) // before a gateway ran

// TestRoomBesideGuests checks that what runs guests, as many as there were processors when
// the program began, has one more for the rest.
func TestRoomBesideGuests(t *testing.T) {
	if os.Getenv("GOMAXPROCS") != "" {
		t.Skip("GOMAXPROCS is set, and taken as it is")
	}
	_, _, end := run(t, start(t, load(t, "version: 1\n")), app.Front{Listen: []string{"127.0.0.1:0"}})
	defer end()
	if got := runtime.GOMAXPROCS(0); got != processors+1 {
		t.Errorf("GOMAXPROCS is %d while a gateway runs, want %d", got, processors+1)
	}
}
