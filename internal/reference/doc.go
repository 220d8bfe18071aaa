// Package reference reads the secrets that a configuration refers to, at the place where they are kept: a file, the
// output of a command, the keyring of the system's user, the gateway's vault, or 1Password.
package reference
