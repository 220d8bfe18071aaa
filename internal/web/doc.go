// Package web listens for HTTP and serves it: on TCP, with TLS whose files are read again when
// they change, and on Unix sockets, whose peers the system names. What is a page it keeps to the
// browser that asks for it.
//
//	listen.go   an address, or a socket, which closed_linux.go closes to others from its first moment
//	tls.go      TLS and its files; over.go ends connections whose client certificate is not trusted any more
//	serve.go    an HTTP server on a listener, until its context ends; conns.go bounds its connections
//	page.go     the headers of pages
//	peer_*.go   whose process is at the other end of a socket; port_*.go who has a port that is taken
package web
