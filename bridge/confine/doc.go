// Package confine starts the programs that serve MCP over stdio, and sees to
// it that they end.
//
// [Start] runs a command with exactly the environment it is given and hands
// over its stdin and stdout. [Child.Close] ends it as the stdio transport of
// MCP asks (revision 2025-11-25, "Lifecycle", shutdown): close stdin, wait,
// SIGTERM, wait, SIGKILL. What is ended is always the whole tree: launchers
// such as npx leave the real server to a grandchild.
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
// Children stand in a process group of their own (under a supervisor in a
// session of their own), so an interrupt typed at the gateway's terminal does
// not end them before the gateway has drained its calls.
//
// The package does not restrict what a child may do.
package confine
