package app_test

import (
	"os"
	"runtime"
	"testing"
)

var processors = runtime.GOMAXPROCS(0) // before TestMain

// TestRoomBesideGuests checks that a program which runs guests, as many as there were
// processors when it began, has one more for the rest.
func TestRoomBesideGuests(t *testing.T) {
	if os.Getenv("GOMAXPROCS") != "" {
		t.Skip("GOMAXPROCS is set, and taken as it is")
	}
	if got := runtime.GOMAXPROCS(0); got != processors+1 {
		t.Errorf("GOMAXPROCS is %d, want %d", got, processors+1)
	}
}
