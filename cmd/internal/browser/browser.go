package browser

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// Open opens a URL in the user's browser, and returns once the browser has asked for it or
// ctx ends. The URL may hold a secret, and every user of a machine can read the arguments of its
// processes: the browser gets the path of a page in dir that only this user can read. The page leads
// to an address of this command, which redirects to the URL once.
func Open(ctx context.Context, dir, to string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	asked, path := make(chan struct{}), "/"+rand.Text()
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: once(ln.Addr().String(), path, to, asked)}
	go func() { _ = server.Serve(ln) }() // ends with Shutdown
	defer func() {
		done, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(done) // the redirect is written
	}()
	page, err := writePage(dir, "http://"+ln.Addr().String()+path)
	if err != nil {
		return err
	}
	defer os.Remove(page)
	failed, err := start(page)
	if err != nil {
		return err
	}
	for {
		select {
		case err := <-failed:
			if err != nil {
				return err
			}
			failed = nil // the opener ends before the browser has started
		case <-asked:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// once redirects the first request for a path, and closes asked.
func once(host, path, to string, asked chan struct{}) http.Handler {
	first := make(chan struct{}, 1)
	first <- struct{}{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Host != host || r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		select {
		case <-first:
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		http.Redirect(w, r, to, http.StatusSeeOther)
		close(asked)
	})
}

// writePage writes a page that leads to an address of letters and digits, for this user only.
func writePage(dir, to string) (path string, err error) {
	f, err := os.CreateTemp(dir, "open-*.html") // its mode is 0600
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=%[1]s"><a href="%[1]s">Go on</a>`+"\n", to)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return filepath.Abs(f.Name())
}

// start has the system open a file with the browser, and returns what the opener ends with.
func start(file string) (<-chan error, error) {
	var c *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		c = exec.Command("open", file)
	case "windows":
		c = exec.Command("rundll32", "url.dll,FileProtocolHandler", file)
	default:
		c = exec.Command("xdg-open", (&url.URL{Scheme: "file", Path: file}).String())
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	return ended, nil
}
