// Package address finds the addresses in texts that lead a reader somewhere: URLs, e-mail
// addresses, numbers of accounts and telephones, wallets. Each is returned in one spelling,
// however it was written, so that addresses can be compared.
package address
