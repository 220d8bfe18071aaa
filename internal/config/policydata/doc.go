// Package policydata reads the files that policies decide by: who is granted what, what tools are
// labelled, and how much somebody may use. It also changes grants, in a file or in a document that
// gateways share, and leaves every other line as it was.
//
// grants.go has grants, edit.go changes their lines, labels.go and ratelimit.go have the others.
package policydata
