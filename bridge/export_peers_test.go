package bridge

// BoundPeers lets the host have at most n sessions over HTTP.
func (h *Host) BoundPeers(n int) { h.peers.most = n }
