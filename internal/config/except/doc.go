// Package except counts what the sanitizing rules have found in texts, and writes an
// exception from one into the configuration, as a person would: one entry more, and every other
// line as it was.
//
//	audit log -> found.go: findings, counted -> except.go: the exceptions from one, the narrowest first
//	  -> write.go: the lines that would be new, and, if the file is still what was seen, in it
//
// The command findings and the console show and write them, where a gateway runs by internal/app.
package except
