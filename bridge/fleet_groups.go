package bridge

// Regroup says anew what is in the groups of [FleetConfig.Groups]. Servers stay
// connected, and who watches is told.
func (f *Fleet) Regroup(groups Groups) {
	f.mu.Lock()
	f.cfg.Groups = groups
	f.mu.Unlock()
	f.rebuild()
}
