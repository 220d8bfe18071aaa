// Package except counts what the rules have found by which texts are made safe, and writes an
// exception from one into the configuration, as a person would: one entry more, and every other
// line as it was.
package except
