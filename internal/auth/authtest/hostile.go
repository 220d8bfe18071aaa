package authtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"iter"
	"math/big"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Hostile returns tokens for a resource that must all be refused, by what is wrong with them. The
// caller has to know the keys of the provider already: no token is a reason to fetch keys.
func Hostile(t testing.TB, p *Provider, resource string) map[string]string {
	t.Helper()
	of := func(changes map[string]any) map[string]any {
		all := map[string]any{"aud": resource}
		for name, v := range changes {
			all[name] = v
		}
		return p.Claims(all)
	}
	good := p.Sign(t, of(nil), nil)
	parts := strings.Split(good, ".")
	enc := base64.RawURLEncoding
	raw := func(header, claims string) string { // as it is written, with a signature that is good
		text := enc.EncodeToString([]byte(header)) + "." + enc.EncodeToString([]byte(claims))
		sum := sha256.Sum256([]byte(text))
		signature, err := rsa.SignPKCS1v15(nil, p.RSA, crypto.SHA256, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return text + "." + enc.EncodeToString(signature)
	}
	claims := func(changes map[string]any) string { return p.Sign(t, of(changes), nil) }
	body, err := json.Marshal(of(nil))
	if err != nil {
		t.Fatal(err)
	}
	other := ownRSA(t)
	public, err := jose.JSONWebKey{Key: p.RSA.Public()}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, p.RSA.Public(), p.RSA)
	if err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-2 * time.Hour).Unix()
	return map[string]string{
		"none":                  raw(`{"alg":"none","typ":"at+jwt"}`, string(body)),
		"none, no signature":    enc.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".",
		"None":                  raw(`{"alg":"None","kid":"rsa"}`, string(body)),
		"HS256 with RSA's key":  SignWith(t, jose.SigningKey{Algorithm: jose.HS256, Key: public}, of(nil), map[string]any{"kid": "rsa"}),
		"another key, same kid": SignWith(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: other, KeyID: "rsa"}}, of(nil), nil),
		"another alg of key":    SignWith(t, jose.SigningKey{Algorithm: jose.PS256, Key: jose.JSONWebKey{Key: p.RSA, KeyID: "rsa"}}, of(nil), nil),
		"jku":                   p.Sign(t, of(nil), map[string]any{"jku": p.URL + "/keys"}),
		"jwk":                   p.Sign(t, of(nil), map[string]any{"jwk": json.RawMessage(public)}),
		"x5u":                   p.Sign(t, of(nil), map[string]any{"x5u": p.URL + "/x"}),
		"x5c":                   raw(`{"alg":"RS256","kid":"rsa","x5c":["`+base64.StdEncoding.EncodeToString(certificate)+`"]}`, string(body)),
		"typ no string":         raw(`{"alg":"RS256","kid":"rsa","typ":["dpop+jwt"]}`, string(body)),
		"crit":                  raw(`{"alg":"RS256","kid":"rsa","crit":["exp"],"exp":1}`, string(body)),
		"crit, empty":           raw(`{"alg":"RS256","kid":"rsa","crit":[]}`, string(body)),
		"b64":                   raw(`{"alg":"RS256","kid":"rsa","b64":false}`, string(body)),
		"zip":                   p.Sign(t, of(nil), map[string]any{"zip": "DEF"}),
		"alg twice":             raw(`{"alg":"RS256","alg":"RS256","kid":"rsa"}`, string(body)),
		"ALG":                   raw(`{"ALG":"RS256","kid":"rsa"}`, string(body)),
		"alg no string":         raw(`{"alg":["RS256"],"kid":"rsa"}`, string(body)),
		"iss twice":             p.Sign(t, []byte(strings.Replace(string(body), `{`, `{"iss":"https://evil.example",`, 1)), nil),
		"header no object":      raw(`[]`, string(body)),
		"claims no object":      p.Sign(t, []byte(`[]`), nil),
		"padded":                parts[0] + "." + parts[1] + "." + parts[2] + "==",
		"a long header":         p.Sign(t, of(nil), map[string]any{"note": strings.Repeat("n", 1<<10)}),
		"a long name of a key":  raw(`{"alg":"RS256","kid":"`+strings.Repeat("k", 2000)+`"}`, string(body)),
		"line break":            parts[0][:4] + "\n" + parts[0][4:] + "." + parts[1] + "." + parts[2],
		"standard alphabet":     parts[0] + "." + parts[1] + "." + strings.Repeat("+/", 171),
		"bits left over":        parts[0] + "." + parts[1] + "." + leftOver(parts[2]),
		"two parts":             parts[0] + "." + parts[1],
		"five parts":            good + ".x.y",
		"empty part":            parts[0] + ".." + parts[2],
		"too long":              claims(map[string]any{"note": strings.Repeat("n", 8<<10)}),
		"expired":               claims(map[string]any{"exp": past}),
		"no exp":                claims(map[string]any{"exp": nil}),
		"exp a string":          claims(map[string]any{"exp": strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)}),
		"exp huge":              claims(map[string]any{"exp": json.Number("1e300")}),
		"not yet":               claims(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}),
		"made tomorrow":         claims(map[string]any{"iat": time.Now().Add(24 * time.Hour).Unix()}),
		"another issuer":        claims(map[string]any{"iss": "https://evil.example"}),
		"issuer with a slash":   claims(map[string]any{"iss": p.URL + "/"}),
		"issuer a list":         claims(map[string]any{"iss": []string{p.URL}}),
		"another audience":      claims(map[string]any{"aud": "https://other.example.com/mcp"}),
		"audience's parent":     claims(map[string]any{"aud": "https://gw.example.com"}),
		"audience with slash":   claims(map[string]any{"aud": resource + "/"}),
		"audience's child":      claims(map[string]any{"aud": resource + "/docs"}),
		"no audience":           claims(map[string]any{"aud": nil}),
		"audiences, none ours":  claims(map[string]any{"aud": []any{"a", 5, nil}}),
		"ID token":              claims(map[string]any{"nonce": "n"}),
		"type":                  p.Sign(t, of(nil), map[string]any{"typ": "dpop+jwt"}),
		"no token":              "x",
	}
}

// UnknownKeys are tokens for a resource that name keys which the provider has not, by what they name.
func UnknownKeys(t testing.TB, p *Provider, resource string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for name, kid := range map[string]string{"unknown": "other", "path": "../../etc/passwd", "SQL": "' or 1=1 --"} {
		all[name] = SignWith(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: p.RSA, KeyID: kid}}, p.Claims(map[string]any{"aud": resource}), nil)
	}
	return all
}

// leftOver spells a part once more, with bits set that no byte has.
func leftOver(part string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, part[len(part)-1])
	return part[:len(part)-1] + string(alphabet[last|1])
}

// Mutations are n texts near a token, none of them equal to it.
func Mutations(random *mathrand.Rand, good string, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for range n {
			bad := []byte(good)
			for range 1 + random.IntN(3) {
				switch at := random.IntN(len(bad)); random.IntN(4) {
				case 0:
					bad[at] = byte(0x21 + random.IntN(0x5e))
				case 1:
					bad = slices.Delete(bad, at, at+1)
				case 2:
					bad = slices.Insert(bad, at, byte(0x21+random.IntN(0x5e)))
				default:
					other := random.IntN(len(bad))
					bad[at], bad[other] = bad[other], bad[at]
				}
			}
			if string(bad) != good && !yield(string(bad)) {
				return
			}
		}
	}
}

// HowMany is how many mutations are tried: what a variable says, or else usual.
func HowMany(t testing.TB, s string, usual int) int {
	t.Helper()
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
