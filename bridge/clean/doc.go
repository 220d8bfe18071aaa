// Package clean provides the two parts of the gate that change the contents of calls. [Texts]
// chooses the profile by which package sanitize treats a text: by the tool, its server and the kind
// of the text. [Secrets] decides what happens to secrets in the arguments and results of a tool,
// which package secrets finds.
//
// It holds what an operator chose ([Sanitize]); what is dangerous, and what is a secret, it does
// not know.
package clean
