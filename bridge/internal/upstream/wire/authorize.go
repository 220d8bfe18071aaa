package wire

import (
	"fmt"
	"net/http"
)

// Unauthorized is the error of a request that cannot be made because a credential is missing.
type Unauthorized struct{ Err error }

func (u *Unauthorized) Error() string { return u.Err.Error() }

func (u *Unauthorized) Unwrap() error { return u.Err }

// loginWanted is the error of a server that wants a login for which nothing is configured.
type loginWanted struct{ refused error }

func (l *loginWanted) Error() string {
	return "the server wants a login: add `auth: oauth` to it in the configuration, and run `wasmgate login` for it: " + l.refused.Error()
}

func (l *loginWanted) Unwrap() error { return l.refused }

// Public is for the caller, who may be the one to log in.
func (l *loginWanted) Public() string {
	return "the server wants a login, and none is configured; tell your user to add `auth: oauth` to the server in the configuration of wasmgate, and to run `wasmgate login`"
}

// authorized sends a request with a credential, and once more with another where the server
// refuses the first. A server's 401 is never the answer to a client of the gateway, who would
// take it for one about its own token.
func (o *origin) authorized(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	value, err := o.authorize(ctx, nil)
	for again := false; ; again = true {
		if err != nil {
			return nil, &Unauthorized{err}
		}
		r.Header.Set("Authorization", value)
		resp, err := o.carry(r)
		if err != nil {
			return nil, err
		}
		withoutEcho(resp, value)
		if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			return resp, nil
		}
		resp.Request = r // of the transport's own making it need not be
		if value, err = o.authorize(ctx, resp); err == nil && value == "" {
			return resp, nil
		}
		resp.Body.Close()
		if err == nil && again {
			err = fmt.Errorf("the server refuses its credential with status %d", resp.StatusCode)
		}
		if err != nil {
			return nil, &Unauthorized{err}
		}
		r = r.Clone(ctx)
		if r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}
