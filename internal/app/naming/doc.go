// Package naming finds the principals, groups and servers that commands, clients and rules name in a
// configuration. Its errors say which names there are.
package naming
