// Package confine starts the programs that serve MCP over stdio, and sees to
// it that they end.
//
// [Start] runs a command with exactly the environment it is given and hands over its stdin and
// stdout. [Child.Close] ends it as the stdio transport of MCP asks (revision 2025-11-25,
// "Lifecycle", shutdown): close stdin, wait, SIGTERM, wait, SIGKILL. It always ends the whole tree:
// launchers such as npx leave the real server to a grandchild.
//
// How much of the tree can be reached depends on the platform; [Supervised]
// tells which of these holds:
//
//   - Linux: every descendant ends, also one that left its process group and
//     session (a daemon), however the gateway ends, kill -9 included. The
//     program executes itself once more for each child, as a supervisor that
//     is the child's subreaper (prctl(2), PR_SET_CHILD_SUBREAPER) and holds the
//     other end of a pipe of the gateway. Not reached are processes that
//     somebody else starts on behalf of a child (a container, a systemd unit),
//     and, once somebody kills the supervisor itself with SIGKILL, those that
//     left the child's process group.
//   - Linux, if [Main] was not called or /proc is not mounted: the process
//     group ends; when the gateway is killed only the direct child does.
//   - Other Unix: the process group ends; when the gateway is killed the child
//     only sees its stdin close.
//   - Windows: a job object ends every descendant, however the gateway ends.
//     There is no SIGTERM; CTRL_BREAK takes its place and reaches only children
//     that share the gateway's console.
//
// Children are in a process group of their own (under a supervisor in a session of their own), so
// an interrupt typed at the gateway's terminal does not end them before the gateway has drained its
// calls.
//
// # Confinement
//
// With [Command.Confine] a child and its descendants may do only what [Rules] say, from before the
// first instruction of the program. Only Linux has what it takes, on amd64 and arm64, and [Main]
// must have been called. The supervisor starts the program itself once more, as a launcher, which
// restricts its one thread and then executes the server:
//
//   - Landlock: paths, TCP ports, signals to processes outside, and with them
//     every look into such processes by /proc.
//   - no_new_privs, and no capabilities.
//   - A seccomp filter for what Landlock does not cover: sockets other than TCP,
//     tracing, namespaces, mounts, io_uring, and the like. It refuses numbers that
//     are newer than itself, and the calls of other architectures.
//   - setrlimit(2): descriptors, data, time on the processors, no core dumps.
//   - The supervisor decides about new processes and threads (seccomp hands it
//     the calls), ends a tree that holds too much memory, and removes the
//     temporary folder. Where Landlock does not restrict signals yet (before
//     Linux 6.12) it decides about those too.
//
// [baseExecute] and [baseRead] are what every confined child may use in addition to its rules, so
// that programs start at all.
package confine
