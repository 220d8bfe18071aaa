// Package scan reads definitions of tools, as servers declare them, for what
// attackers put there: text that nobody sees, instructions to the model that the
// user is not meant to know of, parameters that ask for what the tool has no use
// for.
//
// What it finds is advice. The rules know words, and words can be chosen: an
// attack in plain prose passes, and a harmless text may use the words of one. It
// blocks nothing; who wants that pins definitions, or writes a policy over
// input.tool.findings.
package scan
