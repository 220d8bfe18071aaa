// Package folder reads folders as people, their editors, macOS and Kubernetes leave them.
//
// stray.go tells what no one wrote as a part of a folder; walk.go visits the rest.
package folder
