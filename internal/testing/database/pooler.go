package database

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Pooled returns the URL by which a database is reached through PgBouncer, which lends a connection for
// one transaction. It ends with the test.
func (s *Server) Pooled(t testing.TB, url string) string {
	t.Helper()
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		bin, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	need(t, err)
	dir, err := os.MkdirTemp("", "pgbouncer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	ln.Close()
	file := filepath.Join(dir, "pgbouncer.ini")
	settings := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d user=wasmgate\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nauth_type = any\nunix_socket_dir =\npool_mode = transaction\ndefault_pool_size = 3\n", s.port, port)
	if err := errors.Join(os.WriteFile(file, []byte(settings), 0o600), give(file), give(dir)); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(bin, file)
	c.Dir = dir
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	unprivileged(c)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = c.Wait() // it is killed
		close(ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
	})
	pooled := strings.Replace(url, fmt.Sprintf(":%d/", s.port), fmt.Sprintf(":%d/", port), 1)
	for range 200 {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
			return pooled
		}
		select {
		case <-ended:
			t.Fatalf("PgBouncer has ended: %s", said.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("PgBouncer does not listen")
	return ""
}
