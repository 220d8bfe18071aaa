package doc_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate/doc"
)

// The samples of RFC 8785, appendix B: the bits of a float64, and its form.
func TestCanonicalNumbersOfRFC8785(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0",
		0x8000000000000000: "0",
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef4f: "999999999999999900000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		in := strconv.FormatFloat(math.Float64frombits(bits), 'e', -1, 64)
		if got := string(doc.Must(in).Canonical()); got != want {
			t.Errorf("%016x (%s): got %s, want %s", bits, in, got, want)
		}
	}
}

func TestCanonicalNumbers(t *testing.T) {
	for in, want := range map[string]string{
		"1.0": "1", "1.50": "1.5", "-0": "0", "-0.0": "0", "0e5": "0", "0.0e-1000": "0", "1E2": "100", "1e+2": "100", "100e-2": "1",
		"1e21": "1e+21", "1000000000000000000000": "1e+21", "1e20": "100000000000000000000", "1e-6": "0.000001", "1e-7": "1e-7", "0.0000001": "1e-7",
		"1e-10": "1e-10", "1e+100": "1e+100", "1e-100": "1e-100", "4.50": "4.5", "2e-3": "0.002", "0.000000000000000000000000001": "1e-27", "1E30": "1e+30",
		// What a float64 does not hold keeps its digits.
		"333333333.33333329": "333333333.33333329", "9007199254740993": "9007199254740993", "9007199254740993.0": "9007199254740993",
		"90071992547409930e-1": "9007199254740993", "18446744073709551615": "18446744073709551615", "-9007199254740993": "-9007199254740993",
		"1e400": "1e400", "10e399": "1e400", "-1e-400": "-1e-400", "0.1e-399": "1e-400", "100000000000000000000000000000000000001": "100000000000000000000000000000000000001",
	} {
		got := string(doc.Must(in).Canonical())
		if in == "333333333.33333329" { // 33333333333333329e-8
			got, want = rat(t, got).RatString(), rat(t, in).RatString()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func rat(t *testing.T, s string) *big.Rat {
	t.Helper()
	x, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("%s is not a number", s)
	}
	return x
}

func TestCanonical(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"the sample of RFC 8785, 3.2.2": {
			`{
			  "numbers": [333333333.3333333, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
			  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
			  "literals": [null, true, false]
			}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		},
		"the order of RFC 8785, 3.2.3": {
			`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			`{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`,
		},
		"a name before a longer one":    {`{"ab":1,"a":2,"":3}`, `{"":3,"a":2,"ab":1}`},
		"objects in arrays":             {` [ { "b" : 1 , "a" : [ ] } , { } ] `, `[{"a":[],"b":1},{}]`},
		"what needs no escape has none": {`"\/\u0041\u007f\u2028\u00e9"`, "\"/A\x7f\u2028é\""},
		"what needs one has the short":  {`"\u0008\u0009\u000a\u000c\u000d\u0022\u005c\u0000\u001F"`, `"\b\t\n\f\r\"\\\u0000\u001f"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := doc.Must(tt.in)
			if got := string(d.Canonical()); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			sum := sha256.Sum256([]byte(tt.want))
			if got, want := d.Digest(), hex.EncodeToString(sum[:]); got != want || d.Digest() != want {
				t.Errorf("digest = %s, want %s", got, want)
			}
		})
	}
}

// Two documents of different values have different digests, those of one value
// the same, however it is written.
func TestDigestsTellValuesApart(t *testing.T) {
	classes := [][]string{
		{"1", "1.0", "10e-1", "0.1E+1"}, {"9007199254740992", "9007199254740992.0"}, {"9007199254740993", "900719925474099.3e1"},
		{"0.1"}, {"0.1000000000000000055511151231257827"}, {"1e400", "10e399"}, {"1e401"}, {"-1e400"}, {"1e-400"}, {"0", "-0", "0e9"},
		{`"1"`}, {"[1]"}, {`{"a":1,"b":2}`, `{ "b":2, "\u0061":1 }`}, {`{"a":2,"b":1}`}, {"null"}, {`""`}, {"[]"}, {"{}"}, {`"null"`},
	}
	seen := map[string]int{}
	for i, class := range classes {
		for _, s := range class {
			digest := doc.Must(s).Digest()
			if j, ok := seen[digest]; ok && i != j {
				t.Errorf("%s has the digest of %s", s, classes[j][0])
			}
			seen[digest] = i
		}
		if len(seen) != i+1 {
			t.Errorf("%q do not have one digest", class)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	seedDocs(f)
	for _, s := range []string{"1e21", "-1.5e-7", "0.30000000000000004", "123456789012345678901234567890e-20", `{"\ud83d\ude00":1,"\ufb33":2}`, "1e-999", "0.001e1000"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := doc.Parse(b)
		if err != nil {
			return
		}
		canonical := d.Canonical()
		again, err := doc.Parse(canonical)
		if err != nil && strings.Contains(err.Error(), "exponent beyond") {
			return // of 1,024 digits and an exponent of 1,000 it makes one of 2,023
		}
		if err != nil {
			t.Fatalf("%q: canonical %q: %v", b, canonical, err)
		}
		if got := again.Canonical(); !bytes.Equal(got, canonical) {
			t.Fatalf("%q: canonical %q, and of that %q", b, canonical, got)
		}
		if d.Kind() == doc.Number && rat(t, d.String()).Cmp(rat(t, string(canonical))) != 0 {
			t.Fatalf("%q: canonical %q has another value", b, canonical)
		}
	})
}
