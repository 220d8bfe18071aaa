// Package extract takes credentials out of the servers of a configuration, so that they come
// from the environment.
package extract
