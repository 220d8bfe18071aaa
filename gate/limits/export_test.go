package limits

// Workers is how many calls are worked on at once that have much to work on.
var Workers = max(1, processors-1)

// Working returns how many bytes are worked on.
func (l *Limits) Working() int64 { taken, _ := l.work.State(all); return taken }

// Away returns how many calls have given their slot back.
func (l *Limits) Away() int64 { taken, _ := l.away.State(all); return taken }
