package gateway_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/clean"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// random returns n letters and digits, each as seldom as can be.
func random(r *rand.Rand, letters string, n int) string {
	b := []byte(strings.Repeat(letters, n/len(letters)+1))
	r.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
	return string(b[:n])
}

// A secret of a kind that a rule knows, and one that is known by its name alone, in all
// places of arguments and results: the first is redacted both ways, the second is reported;
// neither comes into the log.
func TestSecretsByName(t *testing.T) {
	r := seed.Rand(t)
	const small = "abcdefghijklmnopqrstuvwxyz0123456789"
	kind := "ghp_" + random(r, small+strings.ToUpper(small[:26]), 36)
	named := random(r, small, 24)
	adafruit := random(r, small, 32)

	places := map[string]struct {
		doc, secret string
		redacted    bool
	}{
		"a value":                        {`{"note":%q}`, kind, true},
		"a name":                         {`{%q:"x"}`, kind, true},
		"a name below":                   {`{"a":{%q:{"b":[1]}}}`, kind, true},
		"a name in a text":               {`{"text":"{\"a\":{\"%s\":1}}"}`, kind, true},
		"a name in a list":               {`{"a":[{"b":{%q:"x"}}]}`, kind, true},
		"a value in _meta of a result":   {`{"_meta":{"a":%q}}`, kind, true},
		"a name in _meta of a result":    {`{"_meta":{%q:1}}`, kind, true},
		"a rule's name":                  {`{"adafruit_api_key":%q}`, adafruit, true},
		"a rule's name above":            {`{"adafruit":{"apiKey":%q}}`, adafruit, true},
		"a rule's name beside":           {`{"env":[{"name":"ADAFRUIT_KEY","value":%q}]}`, adafruit, true},
		"a rule's name in a text":        {`{"text":"[{\"key\":\"adafruit-key\",\"value\":\"%s\"}]"}`, adafruit, true},
		"a rule's name before an option": {`{"args":["--adafruit-token",%q]}`, adafruit, true},
		"api_key":                        {`{"api_key":%q}`, named, false},
		"a password in a text":           {`{"text":"{\"db\":{\"password\":\"%s\"}}"}`, named, false},
		"a header":                       {`{"headers":{"Authorization":"Bearer %s"}}`, named, false},
		"a variable":                     {`{"env":[{"name":"DB_PASSWORD","value":%q}]}`, named, false},
		"a list of the environment":      {`{"env":["API_TOKEN=%s"]}`, named, false},
		"an option":                      {`{"args":["--password",%q]}`, named, false},
	}
	for _, record := range []string{"digest", "full"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "audit.jsonl")
		got, answer := "", ""
		g := start(t, gateway.Config{
			Audit: path, AuditOptions: audit.Options{Node: "n", Record: record}, Policy: granting("up__say"),
			Functions: map[string][]options.LocalTool{"up": {tool("say", func(_ context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
				got = c.Args.String()
				return gate.Result{Doc: gate.MustDoc(answer)}, nil
			})}},
		})
		for name, p := range places {
			doc := fmt.Sprintf(p.doc, p.secret)
			answer = doc
			if !strings.Contains(name, "_meta") {
				answer = fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"structuredContent":%s}`, doc, doc)
			}
			res, err := call(g, "up__say", doc)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if strings.Contains(got, p.secret) == p.redacted {
				t.Errorf("%s: the server got %s", name, strings.ReplaceAll(got, p.secret, "SECRET"))
			}
			if strings.Contains(res.Doc.String(), p.secret) == p.redacted {
				t.Errorf("%s: the client got %s", name, strings.ReplaceAll(res.Doc.String(), p.secret, "SECRET"))
			}
			if !strings.Contains(res.Doc.String(), `"rule":"secret/`) {
				t.Errorf("%s: nothing is reported: %s", name, strings.ReplaceAll(res.Doc.String(), p.secret, "SECRET"))
			}
		}
		log, err := os.ReadFile(path)
		if err != nil || len(log) == 0 {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(log)) {
			for _, secret := range []string{kind, named, adafruit} {
				if strings.Contains(line, secret) {
					t.Errorf("%s: the log holds a secret: %s", record, strings.ReplaceAll(line, secret, "SECRET"))
				}
			}
		}
	}
}

// What looks like a secret and is a place in a list, or a key by which things are found,
// goes through both ways without a word, and by the generic rule nothing is changed unless
// somebody asked for it.
func TestCursorsAreNoSecrets(t *testing.T) {
	r := seed.Rand(t)
	token := random(r, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 40)
	answer := ""
	config := func(report []string) gateway.Config {
		return gateway.Config{
			Recorder: new(records), Policy: granting("up__say"), Sanitize: clean.Sanitize{Secrets: clean.SecretRules{Report: report}},
			Functions: map[string][]options.LocalTool{"up": {tool("say", func(_ context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
				answer = c.Args.String()
				return gate.Result{Doc: gate.MustDoc(fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"structuredContent":%s}`, answer, answer))}, nil
			})}},
		}
	}
	reports, redacts := start(t, config(nil)), start(t, config([]string{}))
	for _, doc := range []string{
		`{"text":"More results available, nextPageToken: %s"}`, `{"pageToken":%q}`, `{"text":"pageToken=\"%s\""}`,
		`{"@odata.nextLink":"https://graph.example.com/v1.0/me/messages?$skiptoken=%s"}`, `{"NextToken":%q}`, `{"continuationToken":%q}`,
		`{"text":"idempotency_key: %s"}`, `{"nextSyncToken":%q}`, `{"primary_key":%q}`, `{"cursor":%q}`, `{"sync_token":%q}`, `{"etag":%q}`,
	} {
		doc = fmt.Sprintf(doc, token)
		for _, g := range []*gateway.Gateway{reports, redacts} {
			res, err := call(g, "up__say", doc)
			if err != nil || answer != doc || res.Doc.Get("structuredContent").String() != doc || !res.Doc.Get("_meta").IsZero() {
				t.Errorf("%s: the server got %s, the client %s, %v", doc, answer, res.Doc, err)
			}
		}
	}
	doc := fmt.Sprintf(`{"text":"const token = '%s'"}`, "x"+random(r, token, 40)) // no result had this one
	if _, err := call(reports, "up__say", doc); err != nil || answer != doc {
		t.Errorf("a generic finding: the server got %s, %v", answer, err)
	}
	if _, err := call(redacts, "up__say", doc); err != nil || strings.Contains(answer, token) {
		t.Errorf("a generic finding, to be redacted: the server got %s, %v", answer, err)
	}
}

// What a server has returned goes back only to that server, although the generic rule would take it
// for a secret; a secret of a known kind does not.
func TestWhatAServerReturnedGoesBackToIt(t *testing.T) {
	r := seed.Rand(t)
	const small = "abcdefghijklmnopqrstuvwxyz0123456789"
	row, kind := random(r, small, 30), "ghp_"+random(r, small+strings.ToUpper(small[:26]), 36)
	got := ""
	say := func(_ context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
		got = c.Args.String()
		return text("row " + row + " of " + kind), nil
	}
	g := start(t, gateway.Config{
		Recorder: new(records), Policy: granting("*"), Sanitize: clean.Sanitize{Secrets: clean.SecretRules{Report: []string{}, Results: "allow"}},
		Functions: map[string][]options.LocalTool{"up": {tool("say", say)}, "other": {tool("say", say)}},
	})
	send := func(name, doc string) string {
		if _, err := call(g, name, doc); err != nil {
			t.Fatal(err)
		}
		return got
	}
	access := fmt.Sprintf(`{"access_key":%q}`, row)
	if sent := send("up__say", access); strings.Contains(sent, row) {
		t.Errorf("before it was returned: %s", sent)
	}
	for _, doc := range []string{access, fmt.Sprintf(`{"text":"auth_token=%s"}`, row), fmt.Sprintf(`{"a":"{\"auth_token\":\"%s\"}"}`, row)} {
		if sent := send("up__say", doc); sent != doc {
			t.Errorf("returned: %s", sent)
		}
	}
	if sent := send("other__say", fmt.Sprintf(`{"access_key":%q}`, row[5:]+"abc12")); strings.Contains(sent, row[5:]) {
		t.Errorf("to another server: %s", sent)
	}
	if sent := send("up__say", fmt.Sprintf(`{"access_key":%q}`, kind)); strings.Contains(sent, kind) {
		t.Errorf("of a known kind: %s", sent)
	}
}
