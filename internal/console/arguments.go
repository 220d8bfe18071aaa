package console

import (
	"encoding/json"
	"net/http"

	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/replay"
)

// argumentHandlers serve the arguments and results that were kept.
type argumentHandlers struct {
	*frame
	log       *auditLog
	documents documents
}

// documents returns those with the wanted digests that are kept next to the log, most bytes in all; 0 is no bound.
type documents func(wanted map[string]bool, most int64) (map[string][]byte, error)

// arguments returns the record of a call with its arguments and its result, if they are kept.
func (h *argumentHandlers) arguments(r *http.Request) (audit.Entry, error) {
	e, err := h.log.ended(r)
	if err != nil {
		return e, err
	}
	wanted := map[string]bool{e.ArgsSHA256: true, e.ResultSHA256: true}
	delete(wanted, "")
	kept, err := h.documents(wanted, 0)
	if len(e.Arguments) == 0 {
		e.Arguments = kept[e.ArgsSHA256]
	}
	if len(e.Result) == 0 {
		e.Result = kept[e.ResultSHA256]
	}
	if err == nil && len(e.Arguments)+len(e.Result) == 0 {
		err = &missing{"arguments of call " + e.ID + " that are kept: the key audit.arguments says of which tools they are, and for how long"}
	}
	return e, err
}

func (h *argumentHandlers) getArguments(w http.ResponseWriter, r *http.Request) error {
	e, err := h.arguments(r)
	if err != nil {
		return err
	}
	one := map[string]any{"id": e.ID}
	for key, doc := range map[string][]byte{"arguments": e.Arguments, "result": e.Result} {
		if len(doc) > 0 {
			one[key] = json.RawMessage(doc)
		}
	}
	return answer(w, one, nil)
}

func (h *argumentHandlers) argumentsPage(w http.ResponseWriter, r *http.Request) error {
	e, err := h.arguments(r)
	if err != nil {
		return err
	}
	return h.show(w, r, "arguments", "Arguments and result", map[string]any{"Call": e, "Test": replay.Test(e)})
}
