package web

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// PortHolder names the process that listens on the port of addr, or returns ""
// if that cannot be seen: through the table of sockets, and the descriptors of
// the processes that this user may look into (proc(5)).
func PortHolder(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return ""
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if inode := listener(table, fmt.Sprintf(":%04X", n)); inode != "" {
			return owner("socket:[" + inode + "]")
		}
	}
	return ""
}

// listener returns the inode of the socket that listens on a port.
func listener(table, port string) string {
	f, err := os.Open(table)
	if err != nil {
		return ""
	}
	defer f.Close()
	const listening = "0A"
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[1], port) && fields[3] == listening {
			return fields[9]
		}
	}
	return ""
}

func owner(socket string) string {
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && target == socket {
			pid := strings.Split(fd, "/")[2]
			name, _ := os.ReadFile("/proc/" + pid + "/comm")
			return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), pid)
		}
	}
	return ""
}
