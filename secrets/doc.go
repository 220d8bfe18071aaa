// Package secrets finds secrets in text: keys, tokens and passwords.
//
// Most rules are those of gitleaks; gitleaks.toml is generated from its Go library. The search is this package's
// own, because the library runs the expressions of rules over whole texts: one pass over a
// text finds the keywords of all rules, and an expression runs only around a keyword, as far
// as its match can reach. Both find the same, which tests compare, except for these:
//
//   - The remark "gitleaks:allow" allows nothing: the sender of a secret could send it.
//   - Names of files that the library leaves out (lock files, pictures) turn off only the
//     generic rules, because the sender chooses them.
//   - A line, as far as allowlists look at it, ends 512 bytes around a match.
//   - A keyword is found only in ASCII letters, not with U+212A for its k or U+0130 for its i.
//   - A part of an expression without limit takes 4 KiB, or 32 KiB if it takes lines.
//
// Before an expression runs, the text behind the keyword is compared with the kinds of
// characters that the expression takes, in each way in which it can go on. So a text of
// keywords without secrets costs a few times what prose costs.
//
// Rules of this package find keys of further providers, credentials in URLs, parts of
// private keys and the gateway's own API keys. [Options.Rules] adds those of an operator.
//
// A [Scanner] reports findings, or replaces each secret by a marker with the name of the
// rule and none of the content. The marker replaces the secret and keeps the words around
// it; where an expression cannot tell the secret from the rest, it replaces the whole match.
//
// # Limits
//
// The package does not find a password without a word for it, a secret in two parts, or one
// that is encrypted, compressed, or encoded in a way or depth that [Options.Decode] does not
// name. It protects against secrets that get into a text by accident. It does not stop a
// sender that hides one on purpose.
package secrets
