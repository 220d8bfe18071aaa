// Package app runs a gateway on a configuration file: it translates the file
// into a gateway, owns its state folder, listens, reloads policies when their
// files change, and ends in order. Of several processes on one configuration the
// first owns the gateway, and another takes its place when it ends.
//
// It is what the commands call; it prints nothing.
package app
