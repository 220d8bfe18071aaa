// Package watch looks at files every so often, which works on every file system and costs
// some stats.
package watch
