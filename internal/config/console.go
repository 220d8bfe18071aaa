package config

import (
	"errors"

	"github.com/wasmgate/wasmgate/internal/config/check"
)

// DefaultConsole is where those who run the gateway reach it.
const DefaultConsole = "127.0.0.1:7421"

// Console says where the console and its API are.
type Console struct {
	Listen string `key:"listen console"` // host:port, always loopback; "off" for none, empty if the file says nothing
}

func checkConsole(s string) error {
	if s == "off" {
		return nil
	}
	if err := check.HostPort(s); err != nil {
		return err
	}
	if !Loopback(s) {
		return errors.New("can be reached from other machines, and the console serves only this one, such as " + DefaultConsole)
	}
	return nil
}
