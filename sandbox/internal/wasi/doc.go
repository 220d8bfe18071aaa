// Package wasi provides WASI preview 1 (wasi_snapshot_preview1) to guests of a
// wazero runtime, with all state in the call and none in the instance.
//
// The host functions find the [Process] of the call that runs through the
// context given to [github.com/tetratelabs/wazero/api.Function]'s Call.
// Arguments, streams, open files, quotas and directories are the Process's, so
// that an instance can be reset or shared between calls: nothing of one call is
// left for the next. proc_exit ends the call and leaves the instance usable.
//
// # What it promises
//
// A guest reaches files only below the directories of its Process:
// `..`, absolute paths and symbolic links cannot leave them, a guest
// makes no symbolic link that climbs, and names are linked and renamed within
// one directory tree only. A directory is read-only unless granted for writing.
// Nothing is opened but regular files: a FIFO or device would block or act on
// the host.
//
// A path is walked one open directory after the other, and symbolic links are followed here: on
// Linux and macOS by openat(2) of single names that are not links, elsewhere by an [os.Root] for
// each directory and a comparison of what was opened with what was looked at. So whatever another
// writer does meanwhile, [Process.Ask] gets the place where the path leads; what is opened is the
// very object that was found there, and a name is made, removed or renamed in the very directory
// that was asked about. After the question the way must still lead there, or the host call fails
// (EAGAIN; ESTALE for a descriptor). Where the file system folds case (Windows, macOS) Ask hears a
// name as the guest spells it.
//
// Every pointer and length is checked before anything happens (EFAULT), and
// every wait, list, path and transfer is bounded or charged.
//
// # Choices
//
//   - A path that leads out of its directory is EPERM, a refusal by Ask EACCES,
//     a change below a read-only directory EROFS, a right that the descriptor
//     lacks ENOTCAPABLE (EBADF for reading and writing, as in POSIX), a spent
//     quota EDQUOT.
//   - A descriptor of a directory reaches what is below it, and nothing above,
//     also by links. It is a name and an identity, and holds nothing
//     open. If somebody else moves the directory, it is ESTALE; the guest's own
//     renames are followed. A granted directory is ESTALE, too, once another
//     has its name.
//   - Symbolic links with an absolute target or with `..` in it cannot be made:
//     moved to another place, they could point out of the tree for programs
//     of the host that follow them. Links that others made may climb, and a
//     guest that may write moves them like any file.
//   - An inode of 0 means unknown: that of `.` and `..` in fd_readdir, and all on
//     Windows.
//   - Standard streams have file type unknown, so no guest takes them for a
//     terminal.
//
// # Not implemented
//
//   - proc_raise: ENOTSUP. A guest has no signals, and none is sent to the host.
//   - sock_accept, sock_recv, sock_send, sock_shutdown: ENOTSOCK (EBADF for what
//     is not open). No descriptor is a socket: the network is reached through
//     host functions that a policy is asked about.
//   - clock_res_get and clock_time_get of the CPU-time clocks (process, thread):
//     ENOTSUP. Fuel counts what a guest executes; CPU time would measure its
//     neighbours.
//   - path_filestat_set_times of a symbolic link itself: ENOTSUP. Windows
//     cannot.
//   - fd_fdstat_set_flags that changes dsync, rsync or sync: ENOTSUP. Hosts fix
//     these when a file is opened.
//   - fd_renumber from or onto a preopened directory: ENOTSUP.
//   - fd_advise is checked and has no effect, as it may.
package wasi
