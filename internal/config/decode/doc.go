// Package decode reads the tree of a file into structs, by the tags of their fields. It reports
// what is wrong with a value at the value's line and path, all of a file at once, and knows no
// part of the configuration.
//
// A [File] is what is read, a [Value] is a place in it. A [Reader] reads one value, reports a
// wrong one and leaves its target as it was then. value.go walks tables and lists, texts.go and
// numbers.go read single values, tags.go makes readers of tags (see [Key]), secret.go reads what
// is never quoted, and units.go has sizes and durations as files write them.
package decode
