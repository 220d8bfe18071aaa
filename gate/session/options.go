package session

import (
	"context"
	"time"
)

// Options configure [Sessions].
type Options struct {
	// Max is how many sessions that have labels are kept. Zero or less means
	// 10,000; a session takes about half a kilobyte. Beyond that one is dropped that was
	// used longer ago than most.
	Max int
	// TTL is the time without use after which a session begins anew. Zero or
	// less means 1 h.
	TTL time.Duration
	// Values is how many values are kept of what one session has met. A session
	// that meets more is Top. Zero means 16,384, negative keeps none; a value
	// takes some 20 bytes.
	Values int
	// AllValues is how many are kept of all sessions together. Beyond that sessions are
	// dropped likewise. Zero or less means 1,048,576.
	AllValues int
	// File keeps labels over the end of the process, readable only for its owner; see
	// [Sessions.Problem]. Empty keeps none.
	File string
	// Inherit lets sessions begin with what their program has read: see [Sessions.Begin].
	// Without it a principal has one session, which every program uses.
	Inherit bool
	// Shared keeps labels for several gateways; nil if this is the only one. It takes the place
	// of File, and sessions of it do not inherit.
	Shared Shared
	// Reader names this gateway, as long as it runs, among those that use Shared.
	Reader string
	// Follow brings the gateway up to a generation of Shared. It is called for each call.
	Follow func(ctx context.Context, generation uint64) error
	// Followed is the generation that the gateway was last brought up to. A call that was decided on
	// before a change of another gateway was made here is decided on again.
	Followed func() uint64
}

// usualTTL is after how long without use a session begins anew by default.
const usualTTL = time.Hour
