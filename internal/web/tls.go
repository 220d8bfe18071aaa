package web

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/internal/files/watch"
)

// Files are the PEM files of a TLS listener.
type Files struct {
	Cert, Key string
	// ClientCA has the certificates that client certificates are issued by; "" asks
	// for none. Required refuses connections without one.
	ClientCA string
	Required bool
}

// lookAgain is how often the files are looked at, at most.
const lookAgain = time.Second

// TLS speaks TLS with what its files say at the time of a connection. While they cannot be
// used, as in the middle of a change, what was read before holds.
type TLS struct {
	files Files
	fail  func(error)

	mu     sync.Mutex
	config *tls.Config
	state  string // of the files that were read
	looked time.Time
}

// NewTLS reads the files. Fail is called when they cannot be used later on.
func NewTLS(f Files, fail func(error)) (*TLS, error) {
	t := &TLS{files: f, fail: fail}
	var err error
	t.state = t.filesState()
	t.config, err = f.read()
	return t, err
}

// Use takes other files from now on; if they cannot be read, the previous ones stay in use. Connections
// end if their client certificate is no longer trusted, or if they have none and one is required.
func (t *TLS) Use(f Files) error {
	c, err := f.read()
	if err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files, t.config = f, c
	t.state = t.filesState()
	return nil
}

// Over returns a listener that speaks TLS over another.
func (t *TLS) Over(ln net.Listener) net.Listener {
	o := &over{Listener: ln, tls: t, open: make(map[*tls.Conn]bool), closed: make(chan struct{}), config: &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.now(), nil },
	}}
	go o.watch() // ends with the listener
	return o
}

// now returns what the files say now.
func (t *TLS) now() *tls.Config {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.looked) < lookAgain {
		return t.config
	}
	t.looked = time.Now()
	if state := t.filesState(); state != t.state {
		t.state = state
		if c, err := t.files.read(); err != nil {
			t.fail(fmt.Errorf("tls: the changed files cannot be used, so the gateway keeps the old certificate: %w", err))
		} else {
			t.config = c
		}
	}
	return t.config
}

// filesState identifies a version of the files.
func (t *TLS) filesState() (all string) {
	for _, path := range []string{t.files.Cert, t.files.Key, t.files.ClientCA} {
		if path != "" {
			all += watch.State(path) + "\n"
		}
	}
	return all
}

func (f Files) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", f.Cert, f.Key, err)
	}
	// Sessions are not resumed: a client certificate is looked at anew for each connection.
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true}
	if f.ClientCA == "" {
		return c, nil
	}
	raw, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, err
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if f.Required {
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if !c.ClientCAs.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("%s holds no certificate", f.ClientCA)
	}
	return c, nil
}
