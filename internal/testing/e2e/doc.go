// Package e2e holds what end-to-end tests share: the built program, a folder with a configuration in
// which it runs, its audit log, a server that is written out byte by byte (Stub) and a client that shows
// every byte of an answer (Wire). Its processes end by signals, which Windows does not have.
package e2e
