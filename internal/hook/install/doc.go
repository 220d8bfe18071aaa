// Package install writes wasmgate's hooks into the settings of agents, takes them out again,
// and looks whether they are there. Everything else in such a file stays as it is, in its
// order.
//
// The command hook calls it. install.go has the agents, their files, and the lines in them;
// doctor.go what is looked at, the hook tried with an event that asks for nothing among it;
// labels.go what agents' own tools are, for a policy.
package install
