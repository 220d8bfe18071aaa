package gateway

import (
	"fmt"
	"sync/atomic"
)

// pauses are the servers that carry out nothing new, "" for all; a set that is replaced as a whole.
type pauses struct {
	atomic.Pointer[map[string]bool]
}

func (p *pauses) load() map[string]bool {
	if set := p.Load(); set != nil {
		return *set
	}
	return nil
}

// reason returns why no new call goes to a server, "" if calls do.
func (p *pauses) reason(server string) string {
	set := p.load()
	switch {
	case len(set) == 0:
		return ""
	case set[""]:
		return "the operator has paused the gateway"
	case set[server]:
		return fmt.Sprintf("the operator has paused server %s", server)
	}
	return ""
}
