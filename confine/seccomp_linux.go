//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter refuses what Landlock does not cover (seccomp(2)). It lists what is refused rather
// than what is allowed: runtimes use some three hundred calls, and nearly all of them act only on
// what a process holds already. Calls that are newer than the list are refused too, because no one
// has examined them.

// newest is the last call that the list below has been compared with.
const newest = unix.SYS_REMOVEXATTRAT

// Where struct seccomp_data has its fields. Arguments are read by their lower
// half, which is all that the kernel looks at in the arguments tested here.
const (
	dataNr, dataArch, dataArgs = 0, 4, 16
)

// cloneNew are the flags that make namespaces (clone(2)).
const cloneNew = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// refused are the calls that no confined process makes.
var refused = append([]uint32{
	// other processes
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	// mounts and namespaces
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_UNSHARE, unix.SYS_SETNS,
	// the kernel, and its parts that have hurt it
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, // whose calls no filter sees
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	// files around Landlock: by handle, or in no folder and so under no rule
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_FANOTIFY_INIT,
	// to be reached by others; what is listened on needs no bind
	unix.SYS_LISTEN,
	// System V and POSIX queues, shared with every process of the user
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}, refusedHere...)

// onlySelf are the calls that may name another process, with what arguments must
// be so that they do not.
var onlySelf = []struct {
	nr   uint32
	must []argument
}{
	{unix.SYS_PRLIMIT64, []argument{{0, 0}}}, {unix.SYS_SCHED_SETAFFINITY, []argument{{0, 0}}}, {unix.SYS_SCHED_SETSCHEDULER, []argument{{0, 0}}},
	{unix.SYS_SCHED_SETPARAM, []argument{{0, 0}}}, {unix.SYS_SCHED_SETATTR, []argument{{0, 0}}},
	{unix.SYS_SETPRIORITY, []argument{{0, unix.PRIO_PROCESS}, {1, 0}}}, {unix.SYS_IOPRIO_SET, []argument{{0, ioprioProcess}, {1, 0}}},
}

type argument struct{ i, is uint32 }

const ioprioProcess = 1 // IOPRIO_WHO_PROCESS

// commands are the calls whose second argument says what to do with a descriptor, which
// may be open for reading only. They list what is allowed: some commands make others
// wait (leases), have the kernel signal them (owners) or change the file itself (flags,
// verity, labels), and each file system and kernel adds its own.
var commands = []struct {
	nr      uint32
	refused []uint32 // of kinds that are allowed
	allowed []uint32
	kinds   []uint32   // whose second byte this is: all of them are allowed
	answer  unix.Errno // to the others
}{
	{unix.SYS_FCNTL, nil, []uint32{
		unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
		unix.F_GETLK, unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW,
		unix.F_GETOWN, unix.F_GETOWN_EX, unix.F_GETSIG, unix.F_SETSIG, unix.F_GETLEASE, unix.F_GETPIPE_SZ, unix.F_SETPIPE_SZ,
		unix.F_ADD_SEALS, unix.F_GET_SEALS, unix.F_GET_RW_HINT, unix.F_GET_FILE_RW_HINT, fcntlSameFile, fcntlCreated,
	}, nil, unix.EPERM},
	{unix.SYS_IOCTL, []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCEXCL, unix.TIOCCONS, fioSetOwn, siocSetGroup}, []uint32{
		unix.FICLONE, unix.FICLONERANGE, unix.FS_IOC_GETFLAGS, getVersion, getAttributes, getExtents, blockSize,
	}, []uint32{ofTerminals, ofSockets}, unix.ENOTTY},
}

// Commands for which the package unix has no name.
const (
	fioSetOwn, siocSetGroup     = 0x8901, 0x8902 // FIOSETOWN, SIOCSPGRP
	fcntlSameFile, fcntlCreated = 1027, 1028     // F_DUPFD_QUERY, F_CREATED_QUERY
	getVersion                  = 0x80087601     // FS_IOC_GETVERSION
	getAttributes               = 0x801c581f     // FS_IOC_FSGETXATTR
	getExtents                  = 0xc020660b     // FS_IOC_FIEMAP
	blockSize                   = 2              // FIGETBSZ
	ofTerminals, ofSockets      = 0x5400, 0x8900 // also of pipes and of all descriptors
)

// signalling are the calls that the supervisor judges where Landlock does not.
var signalling = []uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL}

// signallingToo are rare, and refused there.
var signallingToo = []uint32{unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL}

// looking are the calls by which [Learn] sees what a program uses.
var looking = append([]uint32{unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_CONNECT,
	unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT2, unix.SYS_SYMLINKAT, unix.SYS_LINKAT, unix.SYS_TRUNCATE}, lookingHere...)

type filter []unix.SockFilter

func (p *filter) add(code uint16, k uint32, jt, jf uint8) {
	*p = append(*p, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

func (p *filter) load(offset uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }
func (p *filter) ret(action uint32)  { p.add(unix.BPF_RET|unix.BPF_K, action, 0, 0) }

// when runs body, which must end with ret, if what was loaded compares with k;
// otherwise it goes on behind it with the same value loaded.
func (p *filter) when(compare uint16, k uint32, body func(*filter)) {
	at := len(*p)
	p.add(unix.BPF_JMP|compare|unix.BPF_K, k, 0, 0)
	body(p)
	(*p)[at].Jf = uint8(len(*p) - at - 1) // far below 256: sockets is the longest
}

func (p *filter) arg(i uint32) { p.load(dataArgs + 8*i) }

func refuse(errno unix.Errno) func(*filter) {
	return func(p *filter) { p.ret(unix.SECCOMP_RET_ERRNO | uint32(errno)) }
}

func allow(p *filter)  { p.ret(unix.SECCOMP_RET_ALLOW) }
func notify(p *filter) { p.ret(unix.SECCOMP_RET_USER_NOTIF) }

// filter returns the filter of l for a kernel with Landlock's interface abi.
func (l *launch) filter(abi int) filter {
	var p filter
	p.load(dataArch)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, auditArch, 1, 0)
	p.ret(unix.SECCOMP_RET_KILL_PROCESS) // the numbers of another architecture mean other calls
	p.load(dataNr)
	call := func(nr uint32, body func(*filter)) { p.when(unix.BPF_JEQ, nr, body) }
	if l.Learn {
		for _, nr := range looking {
			call(nr, notify)
		}
		allow(&p)
		return p
	}
	p.when(unix.BPF_JGT, newest, refuse(unix.ENOSYS)) // with them those of x32, whose numbers are higher
	if l.on(guardCalls) {
		for _, nr := range refused {
			call(nr, refuse(unix.EPERM))
		}
		for _, c := range onlySelf {
			call(c.nr, func(p *filter) {
				for _, a := range c.must {
					p.arg(a.i)
					p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, a.is, 1, 0)
					p.ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
				}
				allow(p)
			})
		}
		for _, c := range commands {
			call(c.nr, func(p *filter) {
				p.arg(1)
				for _, v := range c.refused {
					p.when(unix.BPF_JEQ, v, refuse(unix.EPERM))
				}
				for _, v := range c.allowed {
					p.when(unix.BPF_JEQ, v, allow)
				}
				p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xff00, 0, 0)
				for _, kind := range c.kinds {
					p.when(unix.BPF_JEQ, kind, allow)
				}
				refuse(c.answer)(p)
			})
		}
	}
	if l.on(guardSockets) {
		call(unix.SYS_SOCKET, l.sockets)
		call(unix.SYS_SOCKETPAIR, func(p *filter) {
			p.arg(1)
			p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xf, 0, 0) // without SOCK_NONBLOCK and SOCK_CLOEXEC
			p.when(unix.BPF_JEQ, unix.SOCK_STREAM, allow)
			p.when(unix.BPF_JEQ, unix.SOCK_SEQPACKET, allow)
			p.ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)) // a datagram socket could be connected again, to others
		})
		call(unix.SYS_SETSOCKOPT, func(p *filter) { // a TCP socket becomes one of another protocol (AF_SMC), which Landlock does not see
			p.arg(1)
			p.when(unix.BPF_JEQ, unix.SOL_TCP, func(p *filter) {
				p.arg(2)
				p.when(unix.BPF_JEQ, unix.TCP_ULP, refuse(unix.EPERM))
				allow(p)
			})
			allow(p)
		})
		// The ends of a pair of Unix domain sockets could take names that others listen
		// for. Resolvers bind AF_NETLINK, whose addresses have 12 bytes; what has another
		// length is refused.
		call(unix.SYS_BIND, func(p *filter) {
			if l.networked() {
				p.arg(2)
				p.when(unix.BPF_JEQ, unix.SizeofSockaddrNetlink, allow)
			}
			refuse(unix.EPERM)(p)
		})
		// TCP Fast Open connects by sending, which Landlock did not see at first.
		for _, c := range []struct{ nr, flags uint32 }{{unix.SYS_SENDTO, 3}, {unix.SYS_SENDMSG, 2}, {unix.SYS_SENDMMSG, 3}} {
			call(c.nr, func(p *filter) {
				p.arg(c.flags)
				p.when(unix.BPF_JSET, unix.MSG_FASTOPEN, refuse(unix.EPERM))
				allow(p)
			})
		}
	}
	// The flags of clone3 are in memory, where no filter sees them. Libraries
	// take ENOSYS to mean an older kernel and use clone.
	call(unix.SYS_CLONE3, refuse(unix.ENOSYS))
	call(unix.SYS_CLONE, func(p *filter) {
		p.arg(0)
		if l.on(guardCalls) {
			p.when(unix.BPF_JSET, cloneNew, refuse(unix.EPERM))
		}
		notify(p)
	})
	for _, nr := range forkingHere {
		call(nr, notify)
	}
	if abi < abiScopes && l.on(guardSignals) {
		for _, nr := range signalling {
			call(nr, notify)
		}
		for _, nr := range signallingToo {
			call(nr, refuse(unix.EPERM))
		}
	}
	allow(&p)
	return p
}

// networked reports whether there are ports that may be reached.
func (l *launch) networked() bool { return len(l.Rules.Connect) > 0 || l.Rules.DNS }

// sockets is the filter of socket(2): nothing but TCP, and that only if ports
// are to be reached; then also the questions after the machine's own addresses
// that resolvers ask (AF_NETLINK, which changes nothing without capabilities).
//
// Unix domain sockets are refused because Landlock restricts those with a path
// only in the newest kernels, and behind them are the session bus, container engines
// and agents with keys. Pairs of them remain.
func (l *launch) sockets(p *filter) {
	if !l.networked() {
		p.ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
		return
	}
	p.arg(0)
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		p.when(unix.BPF_JEQ, family, func(p *filter) {
			p.arg(2)
			p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.IPPROTO_IP, 2, 0)
			p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.IPPROTO_TCP, 1, 0)
			p.ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)) // MPTCP and SCTP, which Landlock does not see
			p.arg(1)
			p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xf, 0, 0)
			p.when(unix.BPF_JEQ, unix.SOCK_STREAM, allow)
			p.ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
		})
	}
	p.when(unix.BPF_JEQ, unix.AF_NETLINK, func(p *filter) {
		p.arg(2)
		p.when(unix.BPF_JEQ, unix.NETLINK_ROUTE, allow)
		p.ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	})
	p.ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
}

// hasListeners tells whether the kernel hands calls to a supervisor that can let
// them pass.
func hasListeners() bool {
	var sizes [3]uint16
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&sizes)))
	return errno == 0 && sizes[0] <= uint16(unsafe.Sizeof(notification{})) && sizes[1] <= uint16(unsafe.Sizeof(answer{}))
}

// install puts the calling thread under p, and returns the descriptor on which
// its calls are heard.
func (p filter) install() (listener int, err error) {
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	// Killable only: a runtime that interrupts its threads would have each of
	// their calls heard again.
	for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER} {
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
		if errno == 0 {
			return int(fd), nil
		}
		if err = errno; !errors.Is(err, unix.EINVAL) { // before Linux 5.19
			break
		}
	}
	if errors.Is(err, unix.EBUSY) {
		return -1, fmt.Errorf("what started the gateway listens to system calls itself, and only one process can: %w", err)
	}
	return -1, err
}

type (
	// notification is struct seccomp_notif.
	notification struct {
		ID         uint64
		Pid, Flags uint32
		Nr         int32
		Arch       uint32
		IP         uint64
		Args       [6]uint64
	}
	// answer is struct seccomp_notif_resp.
	answer struct {
		ID    uint64
		Val   int64
		Error int32
		Flags uint32
	}
)
