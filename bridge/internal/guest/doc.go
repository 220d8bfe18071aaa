// Package guest makes tools of sandboxed modules: what a module is granted is checked, and each
// call of it gets a host, which lets it have that and no more.
//
// Whatever a guest asks for goes by three: what its module was granted ([Check]), what the
// decision on the call leaves of that, and the gate, which decides about it and records it
// (host.go). What carries it out is [Reach]. How a module becomes a server's tools, and when it
// is closed, is in guest.go; which modules there are, package gateway knows.
package guest
