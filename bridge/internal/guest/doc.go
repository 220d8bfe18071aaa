// Package guest makes tools of sandboxed modules. It checks the grants of a module, and gives each
// call of it a host, which lets it have what is granted and no more.
//
// Each request of a guest is limited by three things: the grants of its module ([Check]), the
// decision on the call, which can narrow them, and the gate, which decides about the request and
// records it (host.go). [Reach] carries requests out. guest.go makes a server's tools of a module,
// and closes the module; package gateway knows which modules there are.
package guest
