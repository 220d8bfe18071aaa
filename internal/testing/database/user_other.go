//go:build !unix

package database

import "os/exec"

func unprivileged(*exec.Cmd) {}

func give(string) error { return nil }
