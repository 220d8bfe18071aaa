package sandbox

import (
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// maxRewound is how often a standby goes back to where it waits. Its stack grows by some bytes
// each time, and what it drew before it read its input is not to be the same for ever.
const maxRewound = 10_000

// A rewind brings a standby back from the end of a call to where it first read its input, so that
// the next call begins in the very same state. All that the guest has is put back. Memory and
// globals, which are the whole state of a sealed module, come from an image. The engine puts back
// stack and registers, for as long as the guest has not returned to the host. Descriptors and all
// else that the host keeps for a guest are new, with a new call and a new process. So a guest is
// ended from within proc_exit, which it also calls when it would return. It finds itself in fd_read
// again, which the rewritten module calls anew then.
type rewind struct {
	run  api.Function          // from within which the guest can go back; nil if there is none, or it has not begun
	to   *snapshot             // memory and globals where it waits; nil if it cannot go back
	back experimental.Snapshot // stack and registers there; good for once
	owed *answer               // of the call that is over
	done int                   // how often it went back
}

// mark keeps the state in which the guest reads its input for the first time, if nothing
// else belongs to it.
func (s *standby) mark() {
	if s.module.sealed == nil || s.module.isolation != IsolationCall || s.rewind.run == nil || !s.process.Fresh() {
		return
	}
	to, err := s.in.snapshot(s.in.memory.Method())
	if err != nil {
		return
	}
	if err := s.in.memory.Rebase(to.image); err != nil {
		_ = to.image.Close() // only unmaps
		s.broken = err
		panic(err)
	}
	s.rewind.to = to
}

// wait is called where the guest waits for its next call. The one before is over now.
func (r *rewind) wait(s *standby) {
	if r.to != nil {
		r.back = experimental.GetSnapshotter(s.engine).Snapshot()
	}
	if r.owed != nil {
		owed, reply := *r.owed, s.reply
		r.owed, s.reply = nil, nil
		s.module.standbys.keep(s) // before anybody calls again
		reply <- owed
	}
}

// exits is called when the guest exits. It does not return if the guest goes back.
func (s *standby) exits(code uint32) {
	c, r := s.call, &s.rewind
	if r.back == nil || c.running != r.run || r.done == maxRewound {
		return
	}
	res, err := c.exited(sys.NewExitError(code))
	res, err = c.conclude(s.in, res, err)
	r.owed = &answer{res, err}
	if err := s.in.reset(r.to); err != nil {
		panic(err)
	}
	s.become(s.nobodys())
	c.turn.Leave()
	r.done++
	r.back.Restore([]uint64{rewrite.Again})
}
