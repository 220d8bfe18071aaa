// Package calls tests the commands of a working day: calls, grants, approvals, sessions. It has tests only.
package calls
