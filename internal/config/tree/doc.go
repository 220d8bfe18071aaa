// Package tree reads YAML, and JSON with comments, into the same small tree of values with
// line numbers. A key that is given twice, and what a parser would take long for, are problems;
// tags, merge keys and complex keys of YAML are refused. What the values mean, the package does
// not know.
//
// tree.go has the [Node] and what both languages share, entries.go reads files that are one long
// list, problem.go is how a file's mistakes are reported.
package tree
