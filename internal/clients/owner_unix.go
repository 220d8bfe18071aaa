//go:build unix

package clients

import (
	"os"
	"strconv"
	"syscall"
)

// owner returns who a file belongs to; of a link, the link.
func owner(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	return strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10), nil
}

// self is who runs this process.
func self() string { return strconv.Itoa(os.Geteuid()) }

// administers reports whether a user is the administrator.
func administers(user string) bool { return user == "0" }
