package confine

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

var (
	refusedHere = []uint32{unix.SYS_KEXEC_FILE_LOAD, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT}
	forkingHere = []uint32{unix.SYS_FORK, unix.SYS_VFORK}
	lookingHere = []uint32{unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_RENAME,
		unix.SYS_RENAMEAT, unix.SYS_SYMLINK, unix.SYS_LINK}
)
