package obligation

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Rate is the obligation to stay within so many calls, so many bytes, or both,
// in a time. Calls and bytes are counted apart, each by a bucket of tokens that
// fills at an even pace: a call takes one token, and goes only if there is one. Of
// bytes, those of the arguments and the result, a call needs that some are left;
// what it took is known and taken only afterwards, so that the next waits for it.
//
// Rates that are equal in all fields share their buckets.
type Rate struct {
	// Name tells rates apart that are equal otherwise; may be empty.
	Name string
	// Key says for whom or what calls are counted apart, sorted, each once. Without
	// any of them all calls of a tenant are counted together.
	Key   []RateKey
	Calls int64 // in Per; zero sets no limit
	Bytes int64 // in Per; zero sets no limit
	Per   time.Duration
	// Burst is how many calls can be made at once after a rest. Zero means Calls.
	Burst int64
}

func (Rate) obligation() {}

// A RateKey is what a [Rate] counts calls apart for.
type RateKey string

// The keys of rates.
const (
	ByPrincipal RateKey = "principal"
	BySession   RateKey = "session" // of the principal
	ByServer    RateKey = "server"
	ByTool      RateKey = "tool"
)

// String is as one would say it: "60 calls and 1000 bytes in 1m0s".
func (r Rate) String() string {
	var what []string
	switch {
	case r.Calls == 1:
		what = append(what, "1 call")
	case r.Calls > 1:
		what = append(what, fmt.Sprintf("%d calls", r.Calls))
	}
	if r.Bytes > 0 {
		what = append(what, fmt.Sprintf("%d bytes", r.Bytes))
	}
	return strings.Join(what, " and ") + " in " + r.Per.String()
}

// Equal reports whether two rates are one.
func (r Rate) Equal(s Rate) bool {
	return r.Name == s.Name && r.Calls == s.Calls && r.Bytes == s.Bytes && r.Per == s.Per && r.Burst == s.Burst && slices.Equal(r.Key, s.Key)
}

// An OverRate says that a rate is used up. It is an error.
type OverRate struct {
	Rate Rate
	// After is when it is worth trying again: before, the call would be refused.
	After time.Duration
}

// Error returns the text for the client.
func (e *OverRate) Error() string {
	return fmt.Sprintf("the rate limit of %s is reached; try again in %s", e.Rate, e.After.Round(time.Millisecond))
}
