//go:build unix

package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
)

// Agree opens a page of the gateway as a person's browser does, signs in, and agrees. It
// returns the last page.
func Agree(ctx context.Context, person, link string) (string, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	c := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		r.Header.Set("X-Person", person)
		return nil
	}}
	do := func(method, at, body string) (*http.Response, string, error) {
		r, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(body))
		if err != nil {
			return nil, "", err
		}
		r.Header.Set("X-Person", person)
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}
		resp, err := c.Do(r)
		if err != nil {
			return nil, "", err
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		return resp, string(raw), err
	}
	_, page, err := do(http.MethodGet, link, "")
	form := regexp.MustCompile(`name="form" value="([^"]+)"`).FindStringSubmatch(page)
	if err != nil || form == nil {
		return page, err
	}
	resp, page, err := do(http.MethodPost, link, url.Values{"form": {form[1]}}.Encode())
	if err != nil {
		return page, err
	}
	_, next, ok := strings.Cut(resp.Header.Get("Refresh"), "url=")
	if !ok {
		return page, nil
	}
	_, page, err = do(http.MethodGet, next, "")
	return page, err
}
