package web

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync"
	"time"
)

// over is a listener whose connections speak TLS. It ends those whose client certificate is not
// trusted any more.
type over struct {
	net.Listener
	tls    *TLS
	config *tls.Config
	closed chan struct{}
	close  sync.Once

	mu   sync.Mutex
	open map[*tls.Conn]bool
}

// Accept implements [net.Listener].
func (o *over) Accept() (net.Conn, error) {
	c, err := o.Listener.Accept()
	if err != nil {
		return nil, err
	}
	under := &tracked{Conn: c}
	over := tls.Server(under, o.config)
	under.gone = func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.open, over)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open[over] = true
	return over, nil
}

// Close implements [net.Listener]. Connections go on.
func (o *over) Close() error {
	o.close.Do(func() { close(o.closed) })
	return o.Listener.Close()
}

// A tracked connection says that it is closed.
type tracked struct {
	net.Conn
	gone func()
}

func (c *tracked) Close() error {
	c.gone()
	return c.Conn.Close()
}

// watch looks at the files, and at all connections when they have changed.
func (o *over) watch() {
	before := o.tls.now()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-o.closed:
			return
		}
		now := o.tls.now()
		if now == before {
			continue
		}
		before = now
		o.mu.Lock()
		for c := range o.open {
			go func() {
				if !trusts(now, c.ConnectionState()) { // which waits for the handshake
					_ = c.NetConn().Close()
				}
			}()
		}
		o.mu.Unlock()
	}
}

// trusts reports whether a configuration takes what the client of a connection has shown: a
// certificate, or none.
func trusts(c *tls.Config, s tls.ConnectionState) bool {
	if len(s.PeerCertificates) == 0 {
		return c.ClientAuth != tls.RequireAndVerifyClientCert
	}
	if c.ClientCAs == nil { // else the machine's own would do
		return false
	}
	between := x509.NewCertPool()
	for _, one := range s.PeerCertificates[1:] {
		between.AddCert(one)
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: c.ClientCAs, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil
}
