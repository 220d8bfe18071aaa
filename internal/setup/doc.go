// Package setup makes the first configuration of somebody, of the servers that their clients
// have.
package setup
