//go:build amd64 || arm64

package confine

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A confined child begins as a launcher: this program, executed once more by
// the supervisor, which restricts itself and executes the server. So nothing of
// the server runs before it is confined, and the supervisor stays free.

// socketFD is the launcher's socket to its supervisor. A launch comes in; out go
// one of the words: with restricted the listener if there is one, and after it the
// number of an error if the exec failed; after failed a report. It closes with the
// exec.
const socketFD = 3

var (
	restricted = []byte{1}
	failed     = []byte{2}
)

// startConfined starts the launcher, and returns when it has become the server.
func startConfined(l launch, reports *gob.Encoder) (report, *watch) {
	w, err := newWatch(&l, reports)
	if err != nil {
		return report{Step: "make a temporary folder: " + err.Error()}, nil
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return report{Step: "make a socket", Errno: errno(err)}, w
	}
	defer ours.Close()
	pid, err := syscall.ForkExec(self, []string{launcherName, l.Path}, &syscall.ProcAttr{
		Dir: l.Dir, Env: []string{}, Files: []uintptr{0, 1, 2, theirs.Fd()},
		// In a session of its own, so that no group holds anybody else.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	_ = theirs.Close()
	if err != nil {
		return report{Step: "start launcher", Errno: errno(err)}, w
	}
	if r := w.receive(ours, l); r.Step != "" || r.Errno != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
		return r, w
	}
	w.begin()
	return report{Pid: pid}, w
}

// receive gives the launcher its orders and waits until it has done them. The
// zero report says so.
func (w *watch) receive(socket *os.File, l launch) report {
	if err := gob.NewEncoder(socket).Encode(l); err != nil {
		return report{Step: "give orders to the launcher: " + err.Error()}
	}
	first, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, nr, _, _, err := unix.Recvmsg(int(socket.Fd()), first, rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return report{Step: "the launcher ended without a word"}
	}
	if listener, ok := descriptor(rights[:nr]); ok {
		w.listen(listener)
	}
	if bytes.Equal(first, restricted) {
		return executed(socket)
	}
	var r report
	if err := gob.NewDecoder(socket).Decode(&r); err != nil {
		return report{Step: "the launcher: " + err.Error()}
	}
	return r
}

// executed waits for what a restricted launcher says: nothing, if it has executed
// the server, or the number of an error.
func executed(socket io.Reader) report {
	var n [4]byte
	switch _, err := io.ReadFull(socket, n[:]); {
	case errors.Is(err, io.EOF):
		return report{}
	case err != nil:
		return report{Step: "the launcher: " + err.Error()}
	}
	return report{Errno: syscall.Errno(binary.NativeEndian.Uint32(n[:]))}
}

func descriptor(rights []byte) (fd int, ok bool) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return 0, false
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, false
	}
	return fds[0], true
}

func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "launcher"), os.NewFile(uintptr(fds[1]), "supervisor"), nil
}

// launchConfined is the life of a launcher. It returns only if it fails.
func launchConfined() int {
	runtime.LockOSThread() // restrictions are of threads, and this one executes the server
	syscall.CloseOnExec(socketFD)
	socket := os.NewFile(socketFD, "supervisor")
	var l launch
	if err := gob.NewDecoder(socket).Decode(&l); err != nil {
		fmt.Fprintf(os.Stderr, "%s: only a gateway starts this program: read orders: %v\n", launcherName, err)
		return 2
	}
	server, err := l.prepare()
	if err == nil {
		err = l.restrict()
	}
	if err == nil {
		server.execute()
		return 1
	}
	_, _ = socket.Write(failed)
	_ = gob.NewEncoder(socket).Encode(report{Step: "confine: " + err.Error()})
	return 1
}

// A server is all that it takes to execute one without any more memory: the limit
// on that is the server's, and this program may be above it.
type server struct {
	path      *byte
	args, env []*byte
	memory    *unix.Rlimit // nil: none
	errno     [4]byte
}

func (l *launch) prepare() (*server, error) {
	s := new(server)
	var err error
	if s.path, err = syscall.BytePtrFromString(l.Path); err == nil {
		s.args, err = syscall.SlicePtrFromStrings(l.Args)
	}
	if err == nil {
		s.env, err = syscall.SlicePtrFromStrings(l.Env)
	}
	if err != nil {
		return nil, err
	}
	// Not RLIMIT_AS: V8 and the runtimes of Go and Java reserve far more addresses
	// than they use.
	if l.on(guardMemory) && !l.Learn {
		var now unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_DATA, &now); err != nil {
			return nil, fmt.Errorf("limit memory: %w", err)
		}
		most := min(uint64(l.Rules.Memory), now.Max)
		s.memory = &unix.Rlimit{Cur: most, Max: most}
	}
	debug.SetGCPercent(-1) // a collection would need memory, too
	return s, nil
}

// execute sets the limit on memory and executes the server. It returns only if it
// fails, and has told the supervisor then. It allocates nothing.
func (s *server) execute() {
	var errno syscall.Errno
	if s.memory != nil {
		_, _, errno = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_DATA, uintptr(unsafe.Pointer(s.memory)), 0, 0, 0)
	}
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(s.path)), uintptr(unsafe.Pointer(&s.args[0])), uintptr(unsafe.Pointer(&s.env[0])))
	}
	binary.NativeEndian.PutUint32(s.errno[:], uint32(errno))
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, socketFD, uintptr(unsafe.Pointer(&s.errno[0])), uintptr(len(s.errno)))
}

// restrict applies the rules to this thread. The order is given: Landlock opens
// paths that may need capabilities, the limits are those of the server and not of
// this program, and the filter ends what may be set up.
func (l *launch) restrict() error {
	abi := landlockABI()
	if !l.on(guardScopes) {
		abi = min(abi, abiScopes-1)
	}
	filter := l.filter(abi)
	// Landlock and the filter both need it: no child of the server gains more
	// than the server has, setuid or not.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if !l.Learn {
		if abi > 0 {
			if err := l.landlock(abi); err != nil {
				return fmt.Errorf("landlock: %w", err)
			}
		}
		if err := l.dropCapabilities(); err != nil {
			return fmt.Errorf("drop capabilities: %w", err)
		}
		if err := l.limit(); err != nil {
			return err
		}
	}
	var rights []byte
	if hasListeners() && l.on(guardListeners) {
		listener, err := filter.install()
		if err != nil {
			return fmt.Errorf("seccomp filter: %w", err)
		}
		rights = unix.UnixRights(listener)
	} // or else best effort
	return unix.Sendmsg(socketFD, restricted, rights, nil, 0)
}

// dropCapabilities leaves nothing to a server of root but its files: with
// no_new_privs what is gone does not come back.
func (l *launch) dropCapabilities() error {
	if !l.on(guardCaps) {
		return nil
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

func (l *launch) limit() error {
	limits := []struct {
		guard, name string
		resource    int
		most        uint64
	}{
		{guardFDs, "files", unix.RLIMIT_NOFILE, uint64(l.Rules.Files)},
		{"", "core dumps", unix.RLIMIT_CORE, 0},
		{guardCPU, "CPU", unix.RLIMIT_CPU, uint64(l.Rules.CPU / time.Second)},
	}
	for _, limit := range limits {
		if limit.guard == guardCPU && limit.most == 0 || limit.guard != "" && !l.on(limit.guard) {
			continue
		}
		var now syscall.Rlimit
		err := syscall.Getrlimit(limit.resource, &now)
		if err == nil {
			most := min(limit.most, now.Max)
			// syscall's, which then does not restore RLIMIT_NOFILE before an exec.
			err = syscall.Setrlimit(limit.resource, &syscall.Rlimit{Cur: most, Max: most})
		}
		if err != nil {
			return fmt.Errorf("limit %s: %w", limit.name, err)
		}
	}
	return nil
}
