package secrets_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/secrets"
)

const benchSize = 64 << 10

var benchTexts = map[string]func(t testing.TB) string{
	"prose": func(testing.TB) string {
		return fill("The committee met on Tuesday and agreed that they would publish the minutes, which everybody may read. " +
			"The key question, who pays for the access road, was left to the next meeting; its secretary keeps the token list.\n")
	},
	"json": func(testing.TB) string {
		return fill(`{"id":"0190c8a2-7c4e-7d7e-8d6b-0a1b2c3d4e5f","key":"PROJ-1234","author":{"login":"someone","site_admin":false},` +
			`"sha":"d670460b4b4aece5915caf5c68d12f560a9fe3e4","url":"https://api.example.com/repos/a/b/issues/17","access":"read"},` + "\n")
	},
	"code": func(t testing.TB) string {
		b, err := os.ReadFile(filepath.Join(goroot(t), "src", "net", "http", "server.go"))
		if err != nil {
			t.Fatal(err)
		}
		return fill(string(b))
	},
	"code about keys": func(t testing.TB) string {
		b, err := os.ReadFile(filepath.Join(goroot(t), "src", "crypto", "tls", "handshake_client.go"))
		if err != nil {
			t.Fatal(err)
		}
		return fill(string(b))
	},
}

// goroot returns where Go's sources are; a test binary built with -trimpath does not know.
func goroot(t testing.TB) string {
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func fill(s string) string { return strings.Repeat(s, benchSize/len(s)+1)[:benchSize] }

func BenchmarkFind(b *testing.B) {
	for name, text := range benchTexts {
		for mode, o := range map[string]secrets.Options{"rules": {}, "all": {Checked: true, Decode: true}} {
			b.Run(name+"/"+mode, func(b *testing.B) {
				s, text := newScanner(b, o), text(b)
				s.Find(text)
				b.SetBytes(benchSize)
				b.ReportAllocs()
				for b.Loop() {
					s.Find(text)
				}
			})
		}
	}
}

// BenchmarkShort measures what a string of a call costs: most are short.
func BenchmarkShort(b *testing.B) {
	for name, text := range map[string]string{"plain": "The quick brown fox jumps over the lazy dog.", "with a keyword": "the key is under the mat"} {
		b.Run(name, func(b *testing.B) {
			s := newScanner(b, secrets.Options{Checked: true, Decode: true})
			s.FindIn("/content/0/text", text)
			b.ReportAllocs()
			for b.Loop() {
				s.FindIn("/content/0/text", text)
			}
		})
	}
}

func BenchmarkReadRules(b *testing.B) {
	for b.Loop() {
		if err := secrets.ReadRules(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompileAllRules(b *testing.B) {
	for b.Loop() {
		if err := secrets.CompileAfresh(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		newScanner(b, secrets.Options{})
	}
}

// BenchmarkHostile measures what a megabyte costs that is made to be slow, compared with one of
// JSON and of source.
func BenchmarkHostile(b *testing.B) {
	const size = 1 << 20
	for name, part := range map[string]string{
		"json": benchTexts["json"](b), "code": benchTexts["code"](b), "code about keys": benchTexts["code about keys"](b),
		"one word": "A1b2C3d4", "one word behind a keyword": "A1b2C3d4", "words behind keywords": "token:A1b2C3d4",
		"keywords": "key=", "keys": "key: A1b2C3d4e5F6g7H8\n", "escapes": `\_\u0041`, "URLs": "a://b:", "line ends": "a1b2c3d4e5\n",
	} {
		b.Run(name, func(b *testing.B) {
			s, text := newScanner(b, secrets.Options{Decode: true}), strings.Repeat(part, size/len(part))
			if name == "one word behind a keyword" {
				text = "token:" + text
			}
			s.Find(text)
			b.SetBytes(size)
			for b.Loop() {
				s.Find(text)
			}
		})
	}
}

// harmlessTails are behind keywords and make no secrets with them.
var harmlessTails = []string{"=", ":", "", "\n", "_", "=A1b2C3d4", ":A1b2C3d4", "=" + strings.Repeat("A1b2C3d4", 30) + "(", "==", "=>'", ": \"a1 "}

// A text of keywords, repeated with what is no secret, costs little: no expression that takes words
// in front of its keyword goes through it.
func TestRepeatedKeywordsAreCheap(t *testing.T) {
	s := newScanner(t, secrets.Options{})
	const size = 16 << 10
	over := make(map[string]int)
	for _, keyword := range s.Keywords() {
		for _, tail := range harmlessTails {
			text := strings.Repeat(keyword+tail, size/len(keyword+tail)+1)
			searched, looked := s.Searched(text)
			for rule, n := range searched {
				if n > size/2 {
					over[rule]++
				}
			}
			if looked > 200*len(text) {
				t.Errorf("%d bytes are looked at for %d of %q", looked, len(text), keyword+tail)
			}
		}
	}
	delete(over, "maxmind-license-key") // which has its keyword at its end
	if len(over) > 0 {
		t.Errorf("the expressions of these rules go through texts without a secret: %v", over)
	}
}

// BenchmarkKeywords is what a megabyte costs that has a keyword again and again.
func BenchmarkKeywords(b *testing.B) {
	s := newScanner(b, secrets.Options{Decode: true})
	for _, keyword := range []string{"key", "token", "secret", "adafruit", "curl", "ghp_", "sk-", "-----begin"} {
		for _, tail := range harmlessTails {
			b.Run(fmt.Sprintf("%q", keyword+tail[:min(len(tail), 9)]), func(b *testing.B) {
				text := strings.Repeat(keyword+tail, (1<<20)/len(keyword+tail))
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					s.Find(text)
				}
			})
		}
	}
}
