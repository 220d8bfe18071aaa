// Package clustercommands holds the commands about several gateways that share a database: cluster and
// store. They speak to the database itself, so that no gateway has to run.
package clustercommands
