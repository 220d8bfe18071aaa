// Package clean has the two parts of the gate that change what calls hold: [Texts] chooses, by the
// tool, its server and the kind of a text, the profile by which package sanitize makes it safe;
// [Secrets] says what becomes of secrets in the arguments and results of a tool, which package
// secrets finds.
//
// It holds what an operator chose ([Sanitize]); what is dangerous, and what is a secret, it does
// not know.
package clean
