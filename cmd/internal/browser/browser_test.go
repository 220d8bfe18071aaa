package browser

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// opener puts a program in the place of the one that opens browsers, which writes down its arguments.
func opener(t *testing.T, status string) (arguments func() string) {
	t.Helper()
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("browsers are opened by another program here")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "arguments")
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" >'" + file + ".new' && mv '" + file + ".new' '" + file + "'\nexit " + status + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		t.Helper()
		for t.Context().Err() == nil {
			if b, err := os.ReadFile(file); err == nil {
				return string(b)
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatal("nothing was opened")
		return ""
	}
}

// A URL with a secret reaches the browser, and never the arguments of a process. The page that leads
// there is its user's only, and is gone afterwards.
func TestOpen(t *testing.T) {
	arguments := opener(t, "0")
	state, secret := t.TempDir(), "http://127.0.0.1:1/ui/signin#t=secret&state=%22>"
	opened := make(chan error)
	go func() { opened <- Open(t.Context(), state, secret) }()
	u, err := url.Parse(strings.TrimSpace(arguments()))
	if err != nil || u.Scheme != "file" {
		t.Fatalf("the opener got %v, %v", u, err)
	}
	file := u.Path
	if strings.Contains(file, "secret") || filepath.Dir(file) != state {
		t.Fatalf("the opener got %q", file)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("the page has the mode %v, %v", info, err)
	}
	page, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(page), "secret") {
		t.Fatalf("the page holds the secret: %s, %v", page, err)
	}
	at := regexp.MustCompile(`url=(http://127\.0\.0\.1:\d+/\w+)"`).FindStringSubmatch(string(page))
	if at == nil {
		t.Fatalf("the page leads nowhere: %s", page)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(url, host string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := client.Do(r)
		if err != nil {
			return 0, ""
		}
		resp.Body.Close()
		return resp.StatusCode, resp.Header.Get("Location")
	}
	for url, host := range map[string]string{at[1] + "x": "", at[1][:len(at[1])-1]: "", at[1]: "evil.example"} {
		if status, to := get(url, host); status != http.StatusNotFound || to != "" {
			t.Errorf("%s of %q: %d to %q", url, host, status, to)
		}
	}
	if status, to := get(at[1], ""); status != http.StatusSeeOther || to != secret {
		t.Errorf("%d to %q", status, to)
	}
	if status, to := get(at[1], ""); to != "" {
		t.Errorf("a second time: %d to %q", status, to)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Whatever ends it, the page is removed.
func TestOpenFails(t *testing.T) {
	state := t.TempDir()
	arguments := opener(t, "3")
	if err := Open(t.Context(), state, "http://127.0.0.1:1/"); err == nil {
		t.Error("an opener that fails is not an error")
	}
	_ = arguments()
	arguments = opener(t, "0")
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan error)
	go func() { opened <- Open(ctx, state, "http://127.0.0.1:1/") }()
	_ = arguments()
	cancel()
	if err := <-opened; !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	if err := Open(ctx, state, "http://127.0.0.1:1/"); !errors.Is(err, context.Canceled) {
		t.Errorf("ended before: %v", err)
	}
	if err := Open(t.Context(), filepath.Join(state, "none"), "http://127.0.0.1:1/"); err == nil {
		t.Error("without a folder a browser is opened")
	}
	if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Nothing else of the program opens an address: it would be in the arguments of a process.
func TestNoOtherOpener(t *testing.T) {
	opens := regexp.MustCompile(`"(xdg-open|open|sensible-browser|rundll32|x-www-browser)"|FileProtocolHandler`)
	for _, tree := range []string{"../../../cmd", "../../../internal", "../../../bridge"} {
		err := filepath.WalkDir(tree, func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "browser.go" {
				return err
			}
			text, err := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, "exec.Command") && opens.MatchString(line) {
					t.Errorf("%s opens an address: %s", path, line)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
