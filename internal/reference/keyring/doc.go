// Package keyring keeps secrets of the gateway in the keyring of the system's user: Secret Service on
// Linux, Keychain on macOS, Credential Manager on Windows.
package keyring
