//go:build amd64 || arm64

package confine

import "golang.org/x/sys/unix"

// AuditArch is how the kernel calls this architecture.
const AuditArch = auditArch

// Filter returns the filter under which a child of r runs.
func Filter(r Rules) []unix.SockFilter {
	return (&launch{Rules: &r}).filter(abiScopes)
}

// Lacking is Missing for another kernel.
func Lacking(r Rules, abi int, listeners bool) []string { return r.lacking(abi, listeners) }

// Refused returns the numbers of the calls that the filter lists.
func Refused() []uint32 { return refused }
