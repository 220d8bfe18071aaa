// Package address finds the addresses in texts that lead a reader somewhere: URLs, e-mail
// addresses, numbers of accounts and telephones, wallets. Each is returned in one spelling,
// however it was written, so that addresses can be compared.
//
// spelling.go puts what browsers, mail programs and people write otherwise into one spelling, and
// address.go finds and compares what is in it. gate/internal/flow asks, so that a destination which
// a session has met is known again.
package address
