package artifact_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/modules/artifact"
)

// docker writes a Docker configuration file.
func docker(t testing.TB, o object) string {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// login is what docker login keeps for host.
func login(host, user, password string) object {
	return object{"auths": object{host: object{"auth": base64.StdEncoding.EncodeToString([]byte(user + ":" + password))}}}
}

// guarded makes a registry ask for a token, which its own endpoint gives to the
// user with the password, or to everybody if there is no password.
func guarded(r *registry, user, password string) (token string) {
	token = rand.Text()
	r.hook = func(w http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path == "/token" {
			if u, p, _ := req.BasicAuth(); password != "" && (u != user || p != password) {
				w.WriteHeader(http.StatusUnauthorized)
			} else if req.URL.Query().Get("scope") != "repository:someone/tool:pull" {
				w.WriteHeader(http.StatusForbidden)
			} else {
				fmt.Fprintf(w, `{"token":%q}`, token)
			}
			return true
		}
		if req.Header.Get("Authorization") == "Bearer "+token {
			return false
		}
		w.Header().Set("Www-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="test",scope="repository:someone/tool:pull"`, r.URL))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	return token
}

func TestToken(t *testing.T) {
	const user = "alice"
	password := rand.Text()
	tests := map[string]struct {
		password string // that the registry wants; "" means none
		config   func(host string) object
		words    []string // of the error; none means that it works
	}{
		"anonymous":                       {"", func(string) object { return object{} }, nil},
		"logged in":                       {password, func(host string) object { return login(host, user, password) }, nil},
		"logged in, under an old address": {password, func(host string) object { return login("https://"+host+"/", user, password) }, nil},
		"logged in, beside a helper": {password, func(host string) object {
			o := login(host, user, password)
			o["credsStore"] = "desktop"
			return o
		}, nil},
		"not logged in":           {password, func(string) object { return object{} }, []string{"there are no credentials for", "run docker login"}},
		"logged in elsewhere":     {password, func(string) object { return login("ghcr.io", user, password) }, []string{"there are no credentials for"}},
		"a wrong password":        {password, func(host string) object { return login(host, user, rand.Text()) }, []string{"are not accepted"}},
		"a helper for all":        {password, func(string) object { return object{"credsStore": "desktop"} }, []string{"docker-credential-desktop, which is not run"}},
		"a helper for this one":   {password, func(host string) object { return object{"credHelpers": object{host: "ecr-login"}} }, []string{"docker-credential-ecr-login, which is not run"}},
		"a file that is not JSON": {password, nil, []string{"config"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			at := r.offer(r.layer(wasmType, code))
			token := guarded(r, user, tt.password)
			path := filepath.Join(t.TempDir(), "config.json")
			if tt.config != nil {
				path = docker(t, tt.config(r.host()))
			} else if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
			var log records
			s := store(t, artifact.Config{DockerConfig: path, Log: log.logger()})
			if tt.words == nil {
				fetch(t, s, at)
				if !slices.Contains(r.authorize, "Bearer "+token) {
					t.Error("the token was not used")
				}
				return
			}
			fails(t, s, at, tt.words...)
			if _, err := s.Fetch(t.Context(), at); strings.Contains(err.Error()+log.String(), password) {
				t.Errorf("the password is in %v, or in the log", err)
			}
		})
	}
}

func TestBasic(t *testing.T) {
	r := newRegistry(t)
	at := r.offer(r.layer(wasmType, code))
	password := rand.Text()
	r.hook = func(w http.ResponseWriter, req *http.Request) bool {
		if _, p, _ := req.BasicAuth(); p == password {
			return false
		}
		w.Header().Set("Www-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	fetch(t, store(t, artifact.Config{DockerConfig: docker(t, login(r.host(), "alice", password))}), at)
	fails(t, store(t, artifact.Config{}), at, "there are no credentials for "+r.host(), "run docker login")
}

// Docker Hub has three names: of the reference, of the host, and of the login.
func TestDockerHub(t *testing.T) {
	r := newRegistry(t)
	m := r.manifest(image(r.layer(wasmType, code)))
	password := rand.Text()
	hub := rewriting{t, "https://registry-1.docker.io", r.host()}
	r.hook = func(w http.ResponseWriter, req *http.Request) bool {
		if _, p, _ := req.BasicAuth(); p == password {
			return false
		}
		w.Header().Set("Www-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	fetch(t, store(t, artifact.Config{Transport: hub, DockerConfig: docker(t, login("https://index.docker.io/v1/", "alice", password))}), ref("docker.io", m))
}

// rewriting sends what is for an origin to a host of the test.
type rewriting struct {
	t      *testing.T
	origin string
	host   string
}

func (h rewriting) RoundTrip(r *http.Request) (*http.Response, error) {
	if got := r.URL.Scheme + "://" + r.URL.Host; got != h.origin {
		h.t.Errorf("a request for %s", got)
	}
	to := r.Clone(r.Context())
	to.URL.Scheme, to.URL.Host = "http", h.host
	resp, err := http.DefaultTransport.RoundTrip(to)
	if resp != nil {
		resp.Request = r
	}
	return resp, err
}

// A credential helper is a program of the user's: the gateway must not run it without being asked.
func TestHelperIsNotRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the helper of this test is a shell script")
	}
	r := newRegistry(t)
	at := r.offer(r.layer(wasmType, code))
	guarded(r, "alice", rand.Text())
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\ntouch %s/was-run\necho '{\"Username\":\"a\",\"Secret\":\"b\"}'\n", dir)
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-test"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	fails(t, store(t, artifact.Config{DockerConfig: docker(t, object{"credsStore": "test", "credHelpers": object{r.host(): "test"}})}), at, "docker-credential-test")
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("files %v", got)
	}
}

// elsewhere is a server that redirects lead to. It serves the module, and keeps
// what it was sent.
func elsewhere(t *testing.T, tls bool) (url string, authorize *[]string) {
	authorize = new([]string)
	start := httptest.NewServer
	if tls {
		start = httptest.NewTLSServer
	}
	s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*authorize = append(*authorize, r.Header.Get("Authorization"))
		w.Write(code)
	}))
	t.Cleanup(s.Close)
	return s.URL, authorize
}

// redirecting makes a registry that wants a token send layers from elsewhere.
func redirecting(r *registry, to string) {
	ask := r.hook
	r.hook = func(w http.ResponseWriter, req *http.Request) bool {
		if ask(w, req) {
			return true
		}
		if !strings.Contains(req.URL.Path, "/blobs/") {
			return false
		}
		http.Redirect(w, req, to+"/store?signature=of-the-store", http.StatusTemporaryRedirect)
		return true
	}
}

// Layers may come from another host, which sees no credentials.
func TestRedirect(t *testing.T) {
	t.Run("over plain HTTP on this machine", func(t *testing.T) {
		r := newRegistry(t)
		at := r.offer(r.layer(wasmType, code))
		password := rand.Text()
		guarded(r, "alice", password)
		to, authorize := elsewhere(t, false)
		for _, to := range []string{to, strings.Replace(to, "127.0.0.1", "localhost", 1)} {
			guarded(r, "alice", password)
			redirecting(r, to)
			fetch(t, store(t, artifact.Config{DockerConfig: docker(t, login(r.host(), "alice", password))}), at)
		}
		if !slices.Equal(*authorize, []string{"", ""}) {
			t.Errorf("the other host saw %q", *authorize)
		}
	})
	t.Run("over HTTPS", func(t *testing.T) {
		r, tr := newRemote(t)
		r.URL = "https://example.com"
		at := ref("example.com", r.manifest(image(r.layer(wasmType, code))))
		password := rand.Text()
		guarded(r, "alice", password)
		to, authorize := elsewhere(t, true)
		redirecting(r, to)
		fetch(t, store(t, artifact.Config{Transport: tr, DockerConfig: docker(t, login("example.com", "alice", password))}), at)
		if !slices.Equal(*authorize, []string{""}) {
			t.Errorf("the other host saw %q", *authorize)
		}
	})
}

// Only the registry gets its credentials, whatever it answers.
func TestCredentialsOfOthers(t *testing.T) {
	r := newRegistry(t)
	at := r.offer(r.layer(wasmType, code))
	password := rand.Text()
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seen = append(seen, req.Header.Get("Authorization"))
		w.Header().Set("Www-Authenticate", `Basic realm="give me"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer other.Close()
	r.hook = func(w http.ResponseWriter, req *http.Request) bool {
		http.Redirect(w, req, other.URL, http.StatusFound)
		return true
	}
	host := strings.TrimPrefix(other.URL, "http://")
	o := login(host, "alice", password)
	o["auths"].(object)[r.host()] = o["auths"].(object)[host]
	s := store(t, artifact.Config{DockerConfig: docker(t, o)})
	fails(t, s, at, "401")
	if !slices.Equal(seen, []string{""}) {
		t.Errorf("the other host saw %q", seen)
	}
}

// A wire notes what goes to the network.
type wire struct {
	next http.RoundTripper
	sent []string
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.sent = append(w.sent, r.URL.Scheme+"://"+r.URL.Host)
	return w.next.RoundTrip(r)
}

// Plain HTTP goes to this machine only, and only when the registry is there.
func TestPlainHTTPRefused(t *testing.T) {
	const refused = "refused to go to"
	local, _ := elsewhere(t, false)
	redirect := func(r *registry, to string) {
		r.hook = func(w http.ResponseWriter, req *http.Request) bool {
			http.Redirect(w, req, to+"/x?signature=of-the-store", http.StatusTemporaryRedirect)
			return true
		}
	}
	challenge := func(r *registry, to string) {
		r.hook = func(w http.ResponseWriter, req *http.Request) bool {
			w.Header().Set("Www-Authenticate", fmt.Sprintf(`Bearer realm="%s/token"`, to))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
	}
	tests := map[string]struct {
		remote bool
		answer func(r *registry, to string)
		to     string
		words  string
	}{
		"redirect from here to another machine":   {false, redirect, "http://example.com", refused + " http://example.com"},
		"redirect from here to a name like ours":  {false, redirect, "http://localhost.example.com", refused},
		"redirect from here to a private address": {false, redirect, "http://169.254.169.254", refused},
		"redirect from elsewhere to itself":       {true, redirect, "http://example.com", refused},
		"redirect from elsewhere to this machine": {true, redirect, local, refused},
		"redirect to a file":                      {true, redirect, "file:///etc/passwd", "file"},
		"token from here at another machine":      {false, challenge, "http://example.com", "example.com"},
		"token from elsewhere by plain HTTP":      {true, challenge, "http://example.com", "http"},
		"token from elsewhere at this machine":    {true, challenge, strings.Replace(local, "http:", "https:", 1), "127.0.0.0/8"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var r *registry
			var w wire
			var at string
			if tt.remote {
				r, w.next = newRemote(t)
				at = ref("example.com", r.manifest(image(r.layer(wasmType, code))))
			} else {
				r, w.next = newRegistry(t), http.DefaultTransport
				at = r.offer(r.layer(wasmType, code))
			}
			tt.answer(r, tt.to)
			s := store(t, artifact.Config{Transport: &w})
			fails(t, s, at, tt.words)
			if _, err := s.Fetch(t.Context(), at); strings.Contains(err.Error(), "of-the-store") {
				t.Errorf("the error tells the right to read: %v", err)
			}
			want := "http://" + r.host()
			if tt.remote {
				want = "https://example.com"
			}
			for _, sent := range w.sent {
				if sent != want {
					t.Errorf("a request went to %s", sent)
				}
			}
			if len(w.sent) != 2 {
				t.Errorf("sent %v", w.sent)
			}
		})
	}
}

func TestRedirectsAreCounted(t *testing.T) {
	r := newRegistry(t)
	at := r.offer(r.layer(wasmType, code))
	r.hook = func(w http.ResponseWriter, req *http.Request) bool {
		http.Redirect(w, req, req.URL.Path, http.StatusFound)
		return true
	}
	fails(t, store(t, artifact.Config{}), at, "more than 5 redirects")
	if n := len(r.seen()); n != 6 {
		t.Errorf("%d requests", n)
	}
}
