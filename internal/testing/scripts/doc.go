// Package scripts runs scripts (testscript's, .txtar files) in which wasmgate is started as people start it.
package scripts
