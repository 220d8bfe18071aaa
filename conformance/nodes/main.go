// Command nodes runs several gateways of one configuration as one: each has a folder of its own, all share
// a PostgreSQL database, and a proxy sends each request to the next one. It runs until it is ended.
//
//	nodes -http ADDRESS -wasmgate PROGRAM -in FOLDER NUMBER
//
// FOLDER has a wasmgate.yaml without addresses, store and state, and what that names.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/database"
	"github.com/wasmgate/wasmgate/internal/testing/duplex"
)

func main() {
	at := flag.String("http", "", "`address` of the proxy")
	program := flag.String("wasmgate", "wasmgate", "the `program`")
	in := flag.String("in", ".", "`folder` with the configuration")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *at, *program, *in, flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, at, program, in, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is no number of gateways", number)
	}
	db, store, err := database.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	secret := rand.Text() + rand.Text()
	var urls []*url.URL
	for i := range n {
		u, wait, err := start(ctx, program, in, store, secret, i)
		if err != nil {
			return err
		}
		defer func() {
			stop()
			_ = wait() // it was ended
		}()
		urls = append(urls, u)
	}
	var turn atomic.Uint64
	s := &http.Server{Addr: at, ReadHeaderTimeout: time.Minute, Handler: duplex.Handler(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to := urls[turn.Add(1)%uint64(n)]
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
	}})}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}

// start starts a gateway, which ends with ctx, and returns where it listens.
func start(ctx context.Context, program, in, store, secret string, i int) (*url.URL, func() error, error) {
	text, err := os.ReadFile(filepath.Join(in, "wasmgate.yaml"))
	if err != nil {
		return nil, nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") // for a port that is free
	if err != nil {
		return nil, nil, err
	}
	ln.Close()
	path := filepath.Join(in, fmt.Sprintf("node%d.yaml", i))
	text = fmt.Appendf(text, `
auth: {keys: true, local: allow}
sessions: {scope: principal}
store: {postgres: %q, secret: %s, node: n%d}
cluster: {listen: %q}
state: state%d/
`, store, secret, i, ln.Addr(), i)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, nil, err
	}
	c := exec.CommandContext(ctx, program, "--config", path, "--json", "serve", "--listen", "127.0.0.1:0")
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := c.Start(); err != nil {
		return nil, nil, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return nil, nil, fmt.Errorf("gateway %d does not listen: %w", i, err)
	}
	var banner struct{ URL string }
	if err := json.Unmarshal(line, &banner); err != nil {
		return nil, nil, err
	}
	if out, err := exec.CommandContext(ctx, program, "--config", path, "tools").CombinedOutput(); err != nil { // waits for the server
		return nil, nil, fmt.Errorf("gateway %d: %w: %s", i, err, out)
	}
	u, err := url.Parse(banner.URL)
	return u, c.Wait, err
}
