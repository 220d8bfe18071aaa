// Package web listens for HTTP and serves it: on TCP, with TLS whose files are read again when
// they change, and on Unix sockets, whose peers the system names. What is a page it keeps to the
// browser that asks for it.
package web
