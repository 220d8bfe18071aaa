//go:build unix

package real

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// testSecrets has a real server read and write files with secrets and without.
func testSecrets(t *testing.T, p *e2e.Program) {
	dir := e2e.Node(t)
	for name, run := range map[string]func(*testing.T, *e2e.Program, string){
		"ordinary files are left alone": readOrdinaryFiles, "no secret arrives or is recorded": redactSecrets,
		"what is allowed arrives and is not recorded": allowSecrets, "what is refused does not arrive": refuseSecrets,
	} {
		t.Run(name, func(t *testing.T) { run(t, p, dir) })
	}
}

// filesystem serves a real server that may use the folder docs and some more. All
// that passes is recorded.
func filesystem(t *testing.T, p *e2e.Program, node, sanitize string, folders ...string) (*e2e.Place, *e2e.Wire) {
	pl := p.Place(t, "")
	pl.Write("docs/a.txt", "the text of a file")
	args, err := json.Marshal(append([]string{filepath.Join(node, filesystemServer, "dist/index.js"), pl.File("docs")}, folders...))
	if err != nil {
		t.Fatal(err)
	}
	pl.Write("wasmgate.yaml", fmt.Sprintf("version: 1\npolicy: {timeout: 5s}\naudit: {record: full}\nsanitize: {secrets: {%s}}\nservers:\n  files: {command: node, args: %s}\n", sanitize, args))
	pl.Must("grant", "--yes", "files__*")
	gw := pl.Serve()
	return pl, e2e.MustWire(t, gw.URL)
}

const (
	ordinaryFiles   = 1000
	maxOrdinaryFile = 200 << 10 // bytes
)

// readOrdinaryFiles reads source code and documentation of Go. The figure that is
// aimed at is one result in a hundred.
func readOrdinaryFiles(t *testing.T, p *e2e.Program, node string) {
	root := goRoot(t)
	quick := *p
	quick.Path = p.Plain
	pl, w := filesystem(t, &quick, node, "", filepath.Join(root, "src"), filepath.Join(root, "doc"))
	read := map[string]string{} // names by the digest of the arguments
	for _, file := range textFiles(t, root) {
		args := fmt.Sprintf(`{"path":%s}`, e2e.JSONString(file))
		read[e2e.Digest(args)] = file
		if a := w.MustCall(t, "files__read_text_file", args); e2e.Code(a) != "" || a.Error != nil {
			t.Fatalf("%s: %s %+v", file, a.Result, a.Error)
		}
	}
	results, touched, rules := 0, 0, map[string]int{}
	for _, e := range pl.Log() {
		if e.Event != "done" || e.Code != "ok" || read[e.ArgsSHA256] == "" {
			continue
		}
		results++
		kinds := map[string]bool{}
		for _, f := range e.Findings {
			if strings.HasPrefix(f.Rule, "secret/") && f.Removed {
				kinds[f.Rule] = true
			}
		}
		if len(kinds) == 0 {
			continue
		}
		touched++
		t.Logf("%s: %q", read[e.ArgsSHA256], slices.Sorted(maps.Keys(kinds)))
		for kind := range kinds {
			rules[kind]++
		}
	}
	t.Logf("%d of %d results touched: %v", touched, results, rules)
	if results != ordinaryFiles || touched*100 > results {
		t.Errorf("%d of %d results of ordinary files are changed, want at most 1%% of %d", touched, results, ordinaryFiles)
	}
	pl.Verify()
}

func goRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// textFiles returns texts of a Go distribution, spread evenly over all of them.
func textFiles(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	for _, part := range []string{"src", "doc"} {
		err := filepath.WalkDir(filepath.Join(root, part), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || !slices.Contains([]string{".go", ".md", ".txt"}, filepath.Ext(path)) {
				return err
			}
			info, err := e.Info()
			if err == nil && info.Size() <= maxOrdinaryFile {
				all = append(all, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < ordinaryFiles {
		t.Fatalf("only %d texts in %s", len(all), root)
	}
	slices.Sort(all)
	some := make([]string, ordinaryFiles)
	for i := range some {
		some[i] = all[i*len(all)/ordinaryFiles]
	}
	return some
}

const (
	upper    = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lower    = "abcdefghijklmnopqrstuvwxyz"
	decimals = "0123456789"
)

// A credential is a text with a secret in it.
type credential struct{ text, secret string }

// newCredentials makes a credential for each of some rules.
func newCredentials(t *testing.T) map[string]credential {
	t.Helper()
	r := seed.Rand(t)
	// Each letter as seldom as can be: texts with less variety count as placeholders.
	some := func(letters string, n int) string {
		b := []byte(strings.Repeat(letters, n/len(letters)+1))
		r.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		return string(b[:n])
	}
	all := map[string]credential{}
	for rule, secret := range map[string]string{
		"github-pat":               "ghp_" + some(upper+lower+decimals, 36),
		"gitlab-pat":               "glpat-" + some(upper+lower+decimals, 20),
		"aws-access-token":         "AKIA" + some(upper+"234567", 16),
		"slack-bot-token":          "xoxb-" + some(decimals, 12) + "-" + some(decimals, 12) + "-" + some(upper+lower, 24),
		"stripe-access-token":      "sk_" + "live_" + some(upper+lower+decimals, 24),
		"npm-access-token":         "npm_" + some(lower+decimals, 36),
		"digitalocean-pat":         "dop_v1_" + some("abcdef"+decimals, 64),
		"huggingface-access-token": "hf_" + some(lower, 34),
		"shopify-access-token":     "shpat_" + some("abcdef"+decimals, 32),
		"gcp-api-key":              "AIza" + some(upper+lower+decimals, 35),
	} {
		all[rule] = credential{secret, secret}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	all["private-key"] = privateKey(t, key)
	all["jwt"] = webToken(t, key)
	return all
}

func privateKey(t *testing.T, key *ecdsa.PrivateKey) credential {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	return credential{text, strings.Split(text, "\n")[1]}
}

// webToken makes a JSON Web Token (RFC 7519).
func webToken(t *testing.T, key *ecdsa.PrivateKey) credential {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." + encode([]byte(`{"sub":"ada","scope":"everything"}`))
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(crand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := encode(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
	return credential{signed + "." + signature, signature}
}

// forms are ways to write a credential down.
var forms = map[string]func(string) string{
	"plain":  func(s string) string { return s },
	"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"hex":    func(s string) string { return hex.EncodeToString([]byte(s)) },
}

// in reports whether a text holds the secret, in any form.
func (c credential) in(text []byte) bool {
	for _, form := range forms {
		if bytes.Contains(text, []byte(form(c.secret))) || bytes.Contains(text, []byte(form(c.text))) {
			return true
		}
	}
	return false
}

// notRecorded checks that calls are recorded, in full, and no secret with them.
func notRecorded(pl *e2e.Place, all map[string]credential) {
	pl.T.Helper()
	files, err := filepath.Glob(pl.File("state/audit*.jsonl"))
	if err != nil || len(files) == 0 {
		pl.T.Fatalf("no audit log: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			pl.T.Fatal(err)
		}
		if !bytes.Contains(b, []byte(`"arguments":{"`)) || !bytes.Contains(b, []byte(beside)) {
			pl.T.Errorf("%s holds no arguments, or not what stands beside the secrets", f)
		}
		for rule, c := range all {
			if c.in(b) {
				pl.T.Errorf("%s holds a secret of the kind %s", f, rule)
			}
		}
	}
	pl.Verify()
}

// beside comes before each secret, and has to arrive.
const beside = "what stands beside: "

func writeArgs(pl *e2e.Place, file, text string) string {
	return fmt.Sprintf(`{"content":%s,"path":%s}`, e2e.JSONString(text), e2e.JSONString(pl.File(file)))
}

// redactSecrets reads and writes files with secrets, as they are and encoded.
func redactSecrets(t *testing.T, p *e2e.Program, node string) {
	pl, w := filesystem(t, p, node, "")
	all := newCredentials(t)
	for rule, c := range all {
		for name, form := range forms {
			text := beside + form(c.text) + "\n"
			in, out := "docs/in-"+rule+name, "docs/out-"+rule+name
			pl.Write(in, text)
			read := w.MustCall(t, "files__read_text_file", fmt.Sprintf(`{"path":%s}`, e2e.JSONString(pl.File(in))))
			redacted(pl, "a result with "+rule+", "+name, []byte(read.Text()), read.Result, c)

			wrote := w.MustCall(t, "files__write_file", writeArgs(pl, out, text))
			written, err := os.ReadFile(pl.File(out))
			if err != nil {
				t.Fatalf("%v: %s %+v", err, wrote.Result, wrote.Error)
			}
			redacted(pl, "arguments with "+rule+", "+name, written, wrote.Result, c)
			found := func(f e2e.LoggedFinding) bool { // what is base64 may have a rule of its own, such as jwt-base64
				return strings.HasPrefix(f.Rule, "secret/"+rule) && f.At == "arguments:/content" && f.Removed
			}
			if e := pl.LastDone("files__write_file"); !slices.ContainsFunc(e.Findings, found) {
				t.Errorf("%s, %s: found %+v", rule, name, e.Findings)
			}
		}
	}
	notRecorded(pl, all)
}

// redacted checks what came to the other side, and all of an answer.
func redacted(pl *e2e.Place, what string, arrived, answer []byte, c credential) {
	pl.T.Helper()
	if !bytes.HasPrefix(arrived, []byte(beside)) || bytes.Equal(arrived, []byte(beside)) {
		pl.T.Errorf("%s: what stands beside the secret does not arrive: %q", what, arrived)
	}
	if c.in(arrived) || c.in(answer) {
		pl.T.Errorf("%s: the secret arrives", what)
	}
}

// allowSecrets lets one tool have secrets. The log has none all the same, and other
// tools have none.
func allowSecrets(t *testing.T, p *e2e.Program, node string) {
	pl, w := filesystem(t, p, node, `tools: {"files__write_file": {arguments: allow}}`)
	all := newCredentials(t)
	for rule, c := range all {
		text := beside + c.text + "\n"
		a := w.MustCall(t, "files__write_file", writeArgs(pl, "docs/"+rule, text))
		if b, err := os.ReadFile(pl.File("docs/" + rule)); err != nil || string(b) != text {
			t.Errorf("%s does not arrive as it is: %v, %s %+v", rule, err, a.Result, a.Error)
		}
		a = w.MustCall(t, "files__read_text_file", fmt.Sprintf(`{"path":%s}`, e2e.JSONString(pl.File("docs/"+rule))))
		redacted(pl, "a result with "+rule, []byte(a.Text()), a.Result, c)
	}
	notRecorded(pl, all)
}

// refuseSecrets refuses calls whose arguments hold secrets.
func refuseSecrets(t *testing.T, p *e2e.Program, node string) {
	pl, w := filesystem(t, p, node, `tools: {"files__write_file": {arguments: refuse}}`)
	all := newCredentials(t)
	for rule, c := range all {
		a := w.MustCall(t, "files__write_file", writeArgs(pl, "docs/"+rule, beside+c.text+"\n"))
		if got, reason := a.Refusal(); got != "refused_sanitize" || !strings.Contains(reason, rule) || c.in(a.Result) {
			t.Errorf("%s: %s: %s", rule, got, reason)
		}
		if _, err := os.Stat(pl.File("docs/" + rule)); !os.IsNotExist(err) {
			t.Errorf("%s: the server has written the file: %v", rule, err)
		}
		if e := pl.LastDone("files__write_file"); e.Code != "refused_sanitize" {
			t.Errorf("recorded %s", e.Code)
		}
	}
	if a := w.MustCall(t, "files__write_file", writeArgs(pl, "docs/harmless", beside)); e2e.Code(a) != "" || a.Error != nil {
		t.Errorf("arguments without secrets: %s %+v", a.Result, a.Error)
	}
	notRecorded(pl, all)
}
