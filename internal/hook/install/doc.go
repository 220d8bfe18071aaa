// Package install writes wasmgate's hooks into the settings of agents, takes them out again,
// and looks whether they are there. Everything else in such a file stays as it is, in its
// order.
package install
