package plain_test

import (
	"io"
	"log"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http tells there of what servers send unasked
	os.Exit(m.Run())
}
