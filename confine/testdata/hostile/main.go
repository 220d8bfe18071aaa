// Hostile is a server that does what a confined one must not. Each argument
// list is an attack; it prints "done" if that worked, and why not otherwise.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of fcntl and ioctl, as the package unix has no names for them.
const modified, setAttributes = 2, 0x401c5820 // DN_MODIFY, FS_IOC_FSSETXATTR

func main() {
	if os.Args[1] == "sleep" {
		time.Sleep(time.Minute)
		return
	}
	if err := attack(os.Args[1], os.Args[2:]); err != nil {
		fmt.Println(err)
	} else {
		fmt.Println("done")
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func attack(kind string, args []string) error {
	arg := func(i int) string { return args[i] }
	number := func(i int) int { n, _ := strconv.Atoi(args[i]); return n }
	switch kind {
	case "child": // the same in a descendant that left for a session of its own
		cmd := exec.Command("/proc/self/exe", args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := cmd.Output()
		if said := strings.TrimSpace(string(out)); err == nil && said != "done" {
			err = errors.New(said)
		}
		return err

	case "read":
		_, err := os.ReadFile(arg(0))
		return err
	case "list":
		_, err := os.ReadDir(arg(0))
		return err
	case "create":
		return os.WriteFile(arg(0), []byte("x"), 0o600)
	case "append":
		f, err := os.OpenFile(arg(0), os.O_WRONLY|os.O_APPEND, 0)
		return errors.Join(err, f.Close())
	case "truncate":
		return os.Truncate(arg(0), 0)
	case "remove":
		return os.Remove(arg(0))
	case "link": // into a folder that it may write, and through that
		to := filepath.Join(arg(1), "hard")
		if err := os.Link(arg(0), to); err != nil {
			return err
		}
		_, err := os.ReadFile(to)
		return err
	case "symlink":
		to := filepath.Join(arg(1), "soft")
		if err := os.Symlink(arg(0), to); err != nil {
			return err
		}
		_, err := os.ReadFile(to)
		return err
	case "execute":
		return exec.Command(arg(0)).Run()
	case "reopen": // a file, by way of the descriptor of the folder around it
		fd, err := unix.Open(filepath.Dir(arg(0)), unix.O_PATH, 0)
		if err != nil {
			return err
		}
		_, err = os.ReadFile(fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(arg(0))))
		return err
	case "device":
		return unix.Mknod(arg(0), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))

	case "tcp", "tcp6", "mptcp", "udp", "raw", "packet", "fastopen":
		return send(kind, number(0))
	case "unixdirty": // with what was in memory behind the name
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		name := bytes.Repeat([]byte("memory"), 18)
		copy(name, append([]byte(arg(0)), 0))
		address := unix.RawSockaddrUnix{Family: unix.AF_UNIX}
		for i := range address.Path {
			address.Path[i] = int8(name[i])
		}
		_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&address)), unsafe.Sizeof(address))
		return is(errno)
	case "unix":
		return dial(unix.AF_UNIX, unix.SOCK_STREAM, arg(0))
	case "unixpair":
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(fds[0], []byte("x"), 0, &unix.SockaddrUnix{Name: arg(0)})
	case "bindpair": // takes an abstract name
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Bind(fds[0], &unix.SockaddrUnix{Name: fmt.Sprintf("@wasmgate-test-%d", os.Getpid())})
	case "ulp": // what it is refused for is all the same, as long as it is not the filter
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := unix.SetsockoptString(fd, unix.SOL_TCP, unix.TCP_ULP, "smc"); err == unix.EPERM {
			return err
		}
		return nil
	case "nodelay": // what a server may do
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.SetsockoptInt(fd, unix.SOL_TCP, unix.TCP_NODELAY, 1)
	case "listen":
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Listen(fd, 1) // at an address that the kernel picks
	case "bind":
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrInet4{Port: number(0), Addr: [4]byte{127, 0, 0, 1}})

	case "signal":
		return unix.Kill(number(0), unix.Signal(number(1)))
	case "parent":
		return unix.Kill(os.Getppid(), 0)
	case "everybody":
		return unix.Kill(-1, 0)
	case "tgkill":
		return unix.Tgkill(number(0), number(0), 0)
	case "own": // what a server may do
		cmd := exec.Command("/proc/self/exe", "sleep")
		if err := cmd.Start(); err != nil {
			return err
		}
		if err := unix.Kill(cmd.Process.Pid, unix.SIGTERM); err != nil {
			return err
		}
		_ = cmd.Wait()
		return unix.Tgkill(os.Getpid(), unix.Gettid(), 0)
	case "limits":
		return unix.Prlimit(number(0), unix.RLIMIT_CORE, nil, &unix.Rlimit{})
	case "renice":
		return unix.Setpriority(unix.PRIO_PROCESS, number(0), 0)
	case "idle":
		var cpus unix.CPUSet
		if err := unix.SchedGetaffinity(number(0), &cpus); err != nil {
			return err
		}
		return unix.SchedSetaffinity(number(0), &cpus)
	case "owner": // of a pipe, whom the kernel signals
		var p [2]int
		if err := unix.Pipe(p[:]); err != nil {
			return err
		}
		_, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETOWN, number(0))
		return err
	case "lease", "watch", "flags", "verity", "label": // on what is open for reading only
		f, err := os.Open(arg(0))
		if err != nil {
			return err
		}
		switch kind {
		case "lease": // whoever opens the file to write waits
			_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
			return err
		case "watch":
			_, err = unix.FcntlInt(f.Fd(), unix.F_NOTIFY, modified)
			return err
		}
		command := map[string]uintptr{"flags": unix.FS_IOC_SETFLAGS, "verity": unix.FS_IOC_ENABLE_VERITY, "label": setAttributes}[kind]
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), command, ^uintptr(0))
		return is(errno, unix.EFAULT, unix.EOPNOTSUPP)
	case "lock": // what a server may do
		f, err := os.Open(arg(0))
		if err != nil {
			return err
		}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.FS_IOC_GETFLAGS, ^uintptr(0)); errno != unix.EFAULT && errno != unix.ENOTTY {
			return errno
		}
		_, err = unix.IoctlGetInt(int(f.Fd()), unix.TIOCINQ)
		return errors.Join(err, unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}), unix.Flock(int(f.Fd()), unix.LOCK_SH))
	case "addresses":
		_, err := net.Interfaces()
		return err
	case "environment":
		if os.Getenv(arg(0)) != arg(1) {
			return errors.New(os.Getenv(arg(0)))
		}
		return nil
	case "memory of":
		b := make([]byte, 8)
		_, err := unix.ProcessVMReadv(number(0), []unix.Iovec{{Base: &b[0], Len: 8}}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
		return err

	case "processes":
		return processes(number(0))
	case "threads":
		return threads(number(0))
	case "children hold":
		var running []*exec.Cmd
		for range number(0) {
			cmd := exec.Command("/proc/self/exe", "hold", arg(1))
			if err := cmd.Start(); err != nil {
				return err
			}
			running = append(running, cmd)
		}
		for _, cmd := range running {
			if err := cmd.Wait(); err != nil {
				return err
			}
		}
		return nil
	case "hold":
		return hold(number(0), unix.MAP_PRIVATE)
	case "share":
		return hold(number(0), unix.MAP_SHARED)
	case "descriptors":
		for range number(0) {
			if _, err := unix.Dup(0); err != nil {
				return err
			}
		}
		return nil
	case "compute":
		for { // a busy machine takes its time
			var used syscall.Rusage
			if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil || used.Utime.Sec >= 2 {
				return err
			}
			for range 1 << 24 {
			}
		}

	case "namespace of a child":
		cmd := exec.Command("/proc/self/exe", "sleep")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
		if err := cmd.Start(); err != nil {
			return err
		}
		return cmd.Process.Kill()
	case "clone3":
		_, _, errno := unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0)
		return is(errno, unix.EINVAL)
	case "call": // a call with nonsense, which does nothing but be refused
		_, _, errno := unix.Syscall6(uintptr(number(0)), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0))
		if errno == unix.EPERM {
			return errno
		}
		return nil
	case "newest":
		_, _, errno := unix.Syscall(unix.SYS_FILE_GETATTR, ^uintptr(0), 0, 0)
		return is(errno, unix.EINVAL, unix.EFAULT, unix.EBADF)
	case "trace":
		_, _, errno := unix.Syscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0)
		return is(errno)
	case "type":
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSTI, 0)
		return is(errno, unix.ENOTTY, unix.EINVAL, unix.EIO, unix.EFAULT)
	case "capabilities", "privileges":
		field, want := "CapEff:\t0000000000000000", "CapEff"
		if kind == "privileges" {
			field, want = "NoNewPrivs:\t1", "NoNewPrivs"
		}
		status, err := os.ReadFile("/proc/self/status")
		if err != nil || !bytes.Contains(status, []byte(want)) {
			return errors.Join(err, errors.New("not told"))
		}
		if bytes.Contains(status, []byte(field)) {
			return errors.New("has none")
		}
		return nil
	}
	return errors.New("unknown attack")
}

// is returns errno unless it says that the kernel looked at the arguments.
func is(errno unix.Errno, passed ...unix.Errno) error {
	for _, e := range append(passed, 0) {
		if errno == e {
			return nil
		}
	}
	return errno
}

func send(kind string, port int) error {
	family, socket, protocol := unix.AF_INET, unix.SOCK_STREAM, 0
	switch kind {
	case "tcp6":
		family = unix.AF_INET6
	case "mptcp":
		protocol = unix.IPPROTO_MPTCP
	case "udp":
		socket = unix.SOCK_DGRAM
	case "raw":
		socket, protocol = unix.SOCK_RAW, unix.IPPROTO_ICMP
	case "packet":
		family, socket = unix.AF_PACKET, unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(family, socket, protocol)
	if err != nil {
		return err
	}
	var to unix.Sockaddr = &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	switch kind {
	case "tcp6":
		to = &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}
	case "fastopen":
		return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, to)
	}
	return unix.Connect(fd, to)
}

func dial(family, kind int, path string) error {
	fd, err := unix.Socket(family, kind, 0)
	if err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrUnix{Name: path})
}

// processes makes n processes that live at the same time.
func processes(n int) error {
	var made []*exec.Cmd
	defer func() {
		for _, cmd := range made {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	for range n {
		cmd := exec.Command("/proc/self/exe", "sleep")
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("after %d: %w", len(made), err)
		}
		made = append(made, cmd)
	}
	return nil
}

// threads makes n threads that live at the same time. The runtime of Go throws
// when it cannot, so they are made by a child.
func threads(n int) error {
	if os.Getenv("MAKE_THREADS") == "" {
		cmd := exec.Command("/proc/self/exe", "threads", strconv.Itoa(n))
		cmd.Env = append(os.Environ(), "MAKE_THREADS=1")
		out, err := cmd.Output()
		if err == nil && strings.TrimSpace(string(out)) != "done" {
			err = errors.New("not all")
		}
		return err
	}
	made := make(chan bool)
	for range n {
		go func() {
			runtime.LockOSThread()
			made <- true
			time.Sleep(time.Minute)
		}()
		<-made
	}
	return nil
}

// hold fills MiB of memory and keeps them for a while.
func hold(mib, flags int) error {
	for range mib / 16 {
		p, err := unix.MmapPtr(-1, 0, nil, 16<<20, unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
		if err != nil {
			return err
		}
		*(*byte)(unsafe.Pointer(p)) = 1
	}
	time.Sleep(4 * time.Second)
	return nil
}
