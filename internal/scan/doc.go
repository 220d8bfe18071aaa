// Package scan searches definitions of tools, as servers declare them, for signs of an attack: text
// that people do not see, instructions to the model that the user is not meant to know of, parameters
// that ask for data that the tool has no use for.
//
// Its findings are advice. The rules know words, and words can be chosen: an attack in plain prose
// passes, and a harmless text may use the words of one. The package blocks nothing; to block, pin
// definitions, or write a policy over input.tool.findings.
package scan
