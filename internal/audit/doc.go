// Package audit keeps the evidence of what passed a gate. Package gate/audit says what it
// promises, how a line looks, and names what programs may use of it.
//
// log.go is the one writer's way in, entry.go what a line says, encode.go how; writer.go puts lines
// that wait together into one write, owed.go holds the end of a call that could not be written.
// files.go, member.go, pack.go and retention.go are about files: their names, what is within a
// packed one, packing, and which goes. read.go answers questions, verify.go checks a chain, and
// hide.go takes secrets out.
package audit
