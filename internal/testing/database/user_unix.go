//go:build unix

package database

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// other returns the user as whom the server runs if the tests run as root, which it refuses.
func other() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres") // which its package brings
	if err != nil {
		return nil
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func unprivileged(c *exec.Cmd) {
	if u := other(); u != nil {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: u}
	}
}

// give makes a folder that of the user of the server.
func give(dir string) error {
	if u := other(); u != nil {
		return os.Chown(dir, int(u.Uid), int(u.Gid))
	}
	return nil
}
