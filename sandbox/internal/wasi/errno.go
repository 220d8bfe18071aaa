package wasi

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// An errno is what a host function tells the guest. The numbers are those of
// WASI preview 1, typenames.witx, $errno.
type errno uint32

const (
	success        errno = 0
	errAccess      errno = 2  // permission denied
	errAgain       errno = 6  // would block, or changed meanwhile
	errBadFile     errno = 8  // no such descriptor
	errBusy        errno = 10 // in use
	errQuota       errno = 19 // quota exceeded
	errExist       errno = 20 // file exists
	errFault       errno = 21 // bad address
	errTooLarge    errno = 22 // file too large
	errIllegal     errno = 25 // illegal byte sequence
	errInterrupted errno = 27 // interrupted
	errInvalid     errno = 28 // invalid argument
	errIO          errno = 29 // I/O error
	errIsDir       errno = 31 // is a directory
	errLoop        errno = 32 // too many symbolic links
	errManyFiles   errno = 33 // too many open files
	errManyLinks   errno = 34 // too many hard links
	errNameLong    errno = 37 // name too long
	errNoEntry     errno = 44 // no such file or directory
	errNoMemory    errno = 48 // not enough space
	errNoSpace     errno = 51 // no space left on device
	errNoFunction  errno = 52 // function not supported
	errNotDir      errno = 54 // not a directory
	errNotEmpty    errno = 55 // directory not empty
	errNoSocket    errno = 57 // not a socket
	errUnsupported errno = 58 // not supported
	errNoDevice    errno = 60 // no such device or address
	errOverflow    errno = 61 // value too large
	errPermission  errno = 63 // operation not permitted
	errPipe        errno = 64 // broken pipe
	errReadOnly    errno = 69 // read-only file system
	errSeek        errno = 70 // invalid seek
	errStale       errno = 72 // the directory or file is no longer where it was
	errTextBusy    errno = 74 // text file busy
	errCrossDevice errno = 75 // cross-device link
	errCapability  errno = 76 // the descriptor lacks the right
)

// hostErrors says what becomes of an error of the host, the first that fits.
// Numbers come before the kinds of package fs, which are wider.
var hostErrors = []struct {
	err  error
	code errno
}{
	{syscall.EAGAIN, errAgain},
	{syscall.EBUSY, errBusy},
	{syscall.EDQUOT, errQuota},
	{syscall.EFBIG, errTooLarge},
	{syscall.EINTR, errInterrupted},
	{syscall.EISDIR, errIsDir},
	{syscall.ELOOP, errLoop},
	{syscall.EMFILE, errManyFiles},
	{syscall.ENFILE, errManyFiles},
	{syscall.EMLINK, errManyLinks},
	{syscall.ENAMETOOLONG, errNameLong},
	{syscall.ENOMEM, errNoMemory},
	{syscall.ENOSPC, errNoSpace},
	{syscall.ENOTDIR, errNotDir},
	{syscall.ENOTEMPTY, errNotEmpty},
	{syscall.ENXIO, errNoDevice},
	{syscall.EPERM, errPermission},
	{syscall.EPIPE, errPipe},
	{io.ErrClosedPipe, errPipe},
	{syscall.EROFS, errReadOnly},
	{syscall.ETXTBSY, errTextBusy},
	{syscall.EXDEV, errCrossDevice},
	{syscall.EINVAL, errInvalid},
	{fs.ErrNotExist, errNoEntry},
	{fs.ErrExist, errExist},
	{fs.ErrPermission, errAccess},
	{fs.ErrClosed, errBadFile},
	{errors.ErrUnsupported, errUnsupported},
}

// errnoOf translates an error of the host; nil is success.
func errnoOf(err error) errno {
	if err == nil {
		return success
	}
	for _, h := range hostErrors {
		if errors.Is(err, h.err) {
			return h.code
		}
	}
	return errIO
}
