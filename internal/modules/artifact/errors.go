package artifact

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// maxForeign bounds what an error repeats of a registry's text, in bytes.
const maxForeign = 400

var queryPattern = regexp.MustCompile(`\?[^\s"]+`)

// An explained error says in our words what one from the registry means.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }

// explain adds to an error what can be done about it.
func (p *puller) explain(ctx context.Context, err error) error {
	text := foreign(err)
	switch {
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData):
		text = "the registry sent other bytes than the digest and size stand for; they were dropped"
	case errors.Is(err, errdef.ErrNotFound):
		text = "the registry does not have it: check the repository and the digest, and whether it is private"
	case refused(err):
		text += "; " + p.keys.hint(ctx, p.ref.Registry, p.repo.Reference.Host())
	}
	return &explained{text, err}
}

// refused tells whether the registry, or its token endpoint, wants credentials,
// or others.
func refused(err error) bool {
	var answer *errcode.ErrorResponse
	return errors.Is(err, auth.ErrBasicCredentialNotFound) ||
		errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden)
}

// foreign returns the text of err fit to be shown: short, printable, and without
// the queries of URLs, which stores of layers take as the right to read them.
func foreign(err error) string {
	text := queryPattern.ReplaceAllString(err.Error(), "?...")
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '.'
		}
		return r
	}, text)
	if len(text) > maxForeign {
		text = strings.ToValidUTF8(text[:maxForeign], "") + "..."
	}
	return text
}
