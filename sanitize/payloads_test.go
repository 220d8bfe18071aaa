package sanitize_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/judges"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sanitize"
)

// The list has an active text of each form that was tried at the sanitizer. None is active any more, whole or in two pieces, cut
// at several places. That some judge finds each active before keeps the list from rotting;
// what hides by its style the browser alone sees.
func TestPayloadsAreInert(t *testing.T) {
	t.Parallel()
	type look struct {
		by     string
		judge  judges.Judge
		pieces int // how many a text is divided in, to be cut between two of them
	}
	looks := []look{{"parsers", judges.Parsers(t), 7}}
	if !testing.Short() && toolchain.Works(t, "chromium") {
		looks = append(looks, look{"browser", judges.Browser(t), 4})
	}
	if testing.Short() {
		looks[0].pieces = 3
	}
	if unraced.AtWork() {
		looks[0].pieces = 2
	}
	payloads := judges.Payloads(t)
	var texts, hiding []string
	for _, p := range payloads {
		texts = append(texts, p.Text)
	}
	for i, found := range looks[0].judge(texts) {
		if strings.HasPrefix(payloads[i].Form, "hides ") {
			hiding = append(hiding, texts[i])
		} else if found == "" {
			t.Errorf("%s: no parser finds %q active to begin with", payloads[i].Form, texts[i])
		}
	}
	if len(looks) > 1 {
		for i, found := range looks[1].judge(hiding) {
			if found == "" {
				t.Errorf("the browser does not find %q hidden to begin with", hiding[i])
			}
		}
	}
	for _, l := range looks {
		cuts := func(text string) (at []int) {
			for i := 1; i < l.pieces; i++ {
				at = append(at, i*len(text)/l.pieces)
			}
			return at
		}
		for _, p := range judged {
			t.Run(l.by+"/"+string(p), func(t *testing.T) {
				t.Parallel()
				judgeAll(t, l.judge, texts, p)
				if p == sanitize.Text || !unraced.AtWork() {
					judgePieces(t, l.judge, p, texts, cuts)
				}
			})
		}
	}
	t.Logf("%d payloads", len(texts))
}
