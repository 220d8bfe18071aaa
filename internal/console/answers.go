package console

import (
	"encoding/json"
	"net/http"
)

// answer answers a program.
func answer(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n')) // the client may have gone
	return nil
}

// read reads what a program sends.
func read(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return &misused{"the request is not the expected JSON object: " + err.Error()}
	}
	return nil
}
