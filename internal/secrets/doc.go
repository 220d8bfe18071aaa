// Package secrets finds secrets in text: keys, tokens and passwords.
//
// What a secret looks like is the rule set of gitleaks, taken from its Go library.
// How it is searched is this package's own, for the library runs the expressions of
// rules over whole texts: one pass over a text finds the keywords of all rules, and
// an expression is run only around a keyword, as far as its match can reach. What
// is found is what the library finds; tests compare both. The exceptions are meant:
//
//   - A remark "gitleaks:allow" allows nothing. Whoever sends a secret could send it.
//   - Names of files that the library leaves out (lock files, pictures) take away
//     the generic rules alone, for they come from whoever sends the text.
//   - A line, as far as allowlists look at it, ends 512 bytes around a match.
//   - A keyword is found in ASCII letters alone, not with U+212A for its k or U+0130
//     for its i.
//
// A [Scanner] reports findings, or puts a marker in their place that says which rule
// found them, and nothing of their content. The marker takes the place of the secret
// and not of the words around it; where an expression cannot tell the secret from
// the rest, that of the whole match.
//
// # What it does not do
//
// It does not find what looks like anything else: a password without a word for it,
// a secret in two parts, one that is encrypted or compressed, or encoded in another
// way, deeper, or from another character on than [Options.Decode] says. It is made
// against secrets that get into a text by accident. Whoever wants to carry one past
// it can.
package secrets
