//go:build !linux

package audit_test

import "errors"

func mountSmall(string, int) error { return errors.New("not on this system") }

func unmount(string) error { return nil }
