package confine

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

var (
	refusedHere = []uint32{unix.SYS_KEXEC_FILE_LOAD}
	forkingHere []uint32
	lookingHere = []uint32{unix.SYS_RENAMEAT}
)
