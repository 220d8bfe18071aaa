package wasi

import (
	"context"

	"github.com/tetratelabs/wazero/api"
)

// unstableName is the module of the version before preview 1, which compilers of 2019
// and some programs of today use. Its functions have the same names and types.
// Source: wasi_unstable.witx (snapshot 0).
const unstableName = "wasi_unstable"

// unstable are those of its functions that are not those of preview 1.
var unstable = map[string]function{
	"fd_seek":           unstableSeek,
	"fd_filestat_get":   unstableFdFilestat,
	"path_filestat_get": unstablePathFilestat,
	"poll_oneoff":       unstablePoll,
}

// unstableSeek counts $whence from the position, the end and the start.
func unstableSeek(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	whence := uint32(a[2])
	if whence > fromEnd {
		return errInvalid
	}
	return fdSeek(ctx, p, mem, []uint64{a[0], a[1], []uint64{fromPosition, fromEnd, fromStart}[whence], a[3]})
}

// unstableFilestatSize is that of $filestat, whose links have 32 bits.
const unstableFilestatSize = 56

func putUnstableFilestat(b []byte, i *info) {
	var now [filestatSize]byte
	putFilestat(now[:], i)
	copy(b, now[:17])
	clear(b[17:20])
	le.PutUint32(b[20:], uint32(min(i.links, 1<<32-1)))
	copy(b[24:], now[32:])
}

func unstableFdFilestat(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	return p.fdFilestat(ctx, mem, a, unstableFilestatSize, putUnstableFilestat)
}

func unstablePathFilestat(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	return p.pathFilestat(ctx, mem, a, unstableFilestatSize, putUnstableFilestat)
}

// unstableSubscriptionSize is that of $subscription, whose clocks have an identifier.
const unstableSubscriptionSize = 56

func unstablePoll(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	n := uint32(a[2])
	if n == 0 || n > maxSubscriptions {
		return errInvalid
	}
	old, ok := at(mem, a[0], n*unstableSubscriptionSize)
	if !ok {
		return errFault
	}
	list := make([]byte, n*subscriptionSize)
	for s := list; len(s) > 0; s, old = s[subscriptionSize:], old[unstableSubscriptionSize:] {
		copy(s[:16], old)
		if s[8] != pollClock {
			copy(s[16:20], old[16:])
			continue
		}
		copy(s[16:20], old[24:]) // the clock
		copy(s[24:42], old[32:]) // timeout, precision, flags
	}
	return p.poll(ctx, mem, list, a)
}
