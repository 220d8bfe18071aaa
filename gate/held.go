package gate

import "github.com/wasmgate/wasmgate/gate/obligation"

// held is what a call has taken from limits. The zero held is nothing.
type held struct {
	slot    Slot              // nil: it holds nothing now
	reached bool              // it has what it needs of its server and its tool
	paid    []obligation.Rate // those that the call has been charged for
}

// back gives back what is held, of a call that has used so many bytes.
func (h *held) back(bytes int64) {
	if slot := h.slot; slot != nil {
		h.slot, h.reached = nil, false
		slot.Release(bytes)
	}
}
