// Package fields finds fields that a policy reads and the input does not have.
//
// OPA's type checker knows the fields that a reference names. It does not know members of maps,
// keys that functions take as text, what a function does with its arguments, and which fields
// there are for one action. This package follows parts of the input, and objects that a policy
// builds, through variables, rules and calls of functions, and checks each name that it meets.
package fields
