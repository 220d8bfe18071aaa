package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/internal/files/state"
)

// LoadRevocations reads those that a document keeps, and its generation. If that was seen
// already, there are none.
func LoadRevocations(ctx context.Context, doc state.Document, seen uint64) (all []Revocation, generation uint64, err error) {
	raw, generation, err := doc.Load(ctx, seen)
	if err != nil {
		return nil, 0, err
	}
	all, err = parseRevocations(raw)
	if err != nil {
		err = fmt.Errorf("%s: %w", doc.Name(), err)
	}
	return all, generation, err
}

// KeepRevocation adds one to a document.
func KeepRevocation(ctx context.Context, doc state.Document, r Revocation) error {
	return doc.Change(ctx, func(raw []byte) ([]byte, error) {
		all, err := parseRevocations(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", doc.Name(), err)
		}
		raw, err = json.MarshalIndent(append(all, r), "", "  ")
		return append(raw, '\n'), err
	})
}

func parseRevocations(raw []byte) (all []Revocation, err error) {
	if raw != nil {
		err = json.Unmarshal(raw, &all)
	}
	return all, err
}

// Equal reports whether two revocations end the same.
func (r Revocation) Equal(other Revocation) bool {
	at := r.Before.Equal(other.Before)
	r.Before, other.Before = time.Time{}, time.Time{}
	return at && r == other
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
