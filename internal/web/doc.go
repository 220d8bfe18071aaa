// Package web listens for HTTP: on TCP, with TLS whose files are read again when they
// change, and on Unix sockets, whose peers the system names.
package web
