package auth

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/wasmgate/wasmgate/internal/files"
)

// ReadRevocations reads those that a file keeps; none without it.
func ReadRevocations(file string) (all []Revocation, err error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	return all, err
}

// WriteRevocations has a file keep these, and no others.
func WriteRevocations(file string, all []Revocation) error {
	raw, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return files.ReplaceSynced(file, append(raw, '\n'), 0o600)
}

// Words say for a record what a revocation is of, without its names.
func (r Revocation) Words() (what []string) {
	for _, by := range [][2]string{{r.TokenID, "one token, by its id"}, {r.Subject, "the tokens of a subject"}, {r.Principal, "the tokens of a principal"}} {
		if by[0] != "" {
			what = append(what, by[1])
		}
	}
	return what
}
