package wasi

import (
	"context"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// Clocks of preview 1 (typenames.witx, $clockid).
const (
	clockRealtime = iota
	clockMonotonic
	clockProcessCPU
	clockThreadCPU
)

const (
	coarse  = time.Millisecond
	precise = time.Microsecond
)

// origin is where the monotonic clock begins: a second before the program, as
// some runtimes take 0 for "no time". It is the same for all calls, so that
// time does not run backwards in an instance that lives longer than a call.
var origin = time.Now().Add(-time.Second)

func (p *Process) resolution() time.Duration {
	if p.PreciseClocks {
		return precise
	}
	return coarse
}

func clockResGet(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	if e := knownClock(a[0]); e != success {
		return e
	}
	if !mem.WriteUint64Le(uint32(a[1]), uint64(p.resolution())) {
		return errFault
	}
	return success
}

// clockTimeGet ignores the precision that the guest wishes (a[1]).
func clockTimeGet(_ context.Context, p *Process, mem api.Memory, a []uint64) errno {
	if e := knownClock(a[0]); e != success {
		return e
	}
	now := int64(time.Since(origin))
	if uint32(a[0]) == clockRealtime {
		now = time.Now().UnixNano()
	}
	now -= now % int64(p.resolution())
	if !mem.WriteUint64Le(uint32(a[2]), uint64(now)) {
		return errFault
	}
	return success
}

func knownClock(id uint64) errno {
	switch uint32(id) {
	case clockRealtime, clockMonotonic:
		return success
	case clockProcessCPU, clockThreadCPU:
		return errUnsupported
	}
	return errInvalid
}
