package sandbox

// An output takes what a guest writes, up to max bytes. Only the guest's
// goroutine uses it.
type output struct {
	buf  []byte
	max  int64
	full bool // more came, and was dropped
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	room := o.max - int64(len(o.buf))
	o.full = o.full || int64(len(p)) > room
	o.buf = append(o.buf, p[:min(int64(len(p)), room)]...)
	return len(p), nil
}
