//go:build !unix

package app

import "os"

// hangups returns nothing on systems that have no such signal.
func hangups() (signals <-chan os.Signal, stop func()) { return nil, func() {} }
