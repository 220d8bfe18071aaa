//go:build unix

package hungup_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmgate/wasmgate/internal/web/hungup"
)

func TestPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if hungup.Is(w) {
		t.Error("a pipe with a reader is hung up")
	}
	r.Close()
	if !hungup.Is(w) {
		t.Error("a pipe without a reader is not hung up")
	}
	if hungup.Is(new(bytes.Buffer)) {
		t.Error("a buffer is hung up")
	}
}

// TestSocket: the end of what a client sends is not its end.
func TestSocket(t *testing.T) {
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := client.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if hungup.Is(server) {
		t.Error("a client that still reads is hung up")
	}
	client.Close()
	if !hungup.Is(server) {
		t.Error("a client that is gone is not hung up")
	}
}
