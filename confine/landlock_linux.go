//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock is called as the kernel documents it (Documentation/userspace-api/
// landlock.rst) and not through a library: a launcher restricts one thread, the
// one that executes the server, and libraries restrict all of them, for which
// they need signal handlers in every thread.

// The versions of Landlock's interface from which on it restricts what.
const (
	abiFiles   = 3 // Linux 6.2: truncation was the last way to harm a file
	abiNetwork = 4 // Linux 6.7: TCP ports
	abiDevices = 5 // Linux 6.10: ioctl on devices
	abiScopes  = 6 // Linux 6.12: signals, abstract sockets
)

const (
	fsRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fsWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	fsExecute = unix.LANDLOCK_ACCESS_FS_EXECUTE
	// fsNever is handled, and granted to no child.
	fsNever = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
	// fsOfFiles is what can be granted on a path that is not a folder.
	fsOfFiles = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_EXECUTE

	netTCP   = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP | unix.LANDLOCK_ACCESS_NET_BIND_TCP
	rulePort = 2 // LANDLOCK_RULE_NET_PORT
)

// portRule is struct landlock_net_port_attr.
type portRule struct{ Access, Port uint64 }

// landlockABI returns the version of Landlock's interface, 0 if there is none.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0 // not built in, not enabled at boot, or filtered by what runs us
	}
	return int(v)
}

// landlock restricts the calling thread as l asks and the kernel can.
func (l *launch) landlock(abi int) error {
	var attr unix.LandlockRulesetAttr
	size := unsafe.Sizeof(attr.Handled_access_fs) // of those fields that this version knows
	if l.on(guardFiles) {
		attr.Handled_access_fs = fsRead | fsWrite | fsExecute | fsNever
	}
	if abi >= abiNetwork {
		size = unsafe.Offsetof(attr.Scoped)
		if l.on(guardNetwork) {
			attr.Handled_access_net = netTCP
		}
	}
	if abi >= abiDevices && l.on(guardFiles) {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= abiScopes {
		size = unsafe.Offsetof(attr.Quiet_access_fs)
		if l.on(guardSignals) {
			attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		}
	}
	if abi < abiFiles {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi < 2 {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_REFER // which it refuses always
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return fmt.Errorf("create ruleset: %w", errno)
	}
	defer unix.Close(int(fd))
	if err := l.allowPaths(int(fd), attr.Handled_access_fs); err != nil {
		return err
	}
	if attr.Handled_access_net != 0 {
		if err := l.allowPorts(int(fd)); err != nil {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("restrict: %w", errno)
	}
	return nil
}

func (l *launch) allowPaths(ruleset int, handled uint64) error {
	if handled == 0 {
		return nil
	}
	lists := []struct {
		name   string
		paths  []string
		access uint64
		base   bool // what does not exist is passed over
	}{
		{"the base set", baseExecute(), fsRead | fsExecute, true},
		{"the base set", baseRead(), fsRead, true},
		{"the base set", baseWrite(), fsRead | fsWrite, true},
		{"the program", []string{l.Path}, fsRead | fsExecute, false},
		{"the temporary folder", []string{l.Temp}, fsRead | fsWrite, false},
		{"confine.read", l.Rules.Read, fsRead, false},
		{"confine.write", l.Rules.Write, fsRead | fsWrite, false},
		{"confine.execute", l.Rules.Execute, fsRead | fsExecute, false},
	}
	for _, list := range lists {
		for _, path := range list.paths {
			err := allowPath(ruleset, path, list.access&handled)
			if err != nil && !(list.base && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission))) {
				return fmt.Errorf("%s: %s: %w", list.name, path, err)
			}
		}
	}
	return nil
}

func allowPath(ruleset int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= fsOfFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	return addRule(ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(&rule))
}

func (l *launch) allowPorts(ruleset int) error {
	ports := append([]uint16(nil), l.Rules.Connect...)
	if l.Rules.DNS {
		ports = append(ports, portOfNames)
	}
	for _, port := range ports {
		rule := portRule{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
		if err := addRule(ruleset, rulePort, unsafe.Pointer(&rule)); err != nil {
			return fmt.Errorf("confine.connect: %d: %w", port, err)
		}
	}
	return nil
}

func addRule(ruleset int, kind uintptr, rule unsafe.Pointer) error {
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), kind, uintptr(rule), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
