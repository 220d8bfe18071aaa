// Package signin signs browsers in to the console, and knows those that are.
//
// The operator of the machine has a link or a code, which comes over the control socket (browsers.go, pages.go). Other
// persons sign in at an issuer of the configuration (person.go): what they may do is for policies to say.
package signin
