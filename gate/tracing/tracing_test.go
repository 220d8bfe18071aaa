package tracing_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate/tracing"
)

func TestParse(t *testing.T) {
	const id, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for s, want := range map[string]string{
		"00-" + id + "-" + span + "-01":                       "sampled",
		"00-" + id + "-" + span + "-00":                       "known",
		"00-" + id + "-" + span + "-03":                       "sampled", // flags of a later version
		"01-" + id + "-" + span + "-01-more":                  "sampled", // of a later version what is known counts
		"00-" + id + "-" + span + "-01-more":                  "",
		"01-" + id + "-" + span + "-01x":                      "",
		"ff-" + id + "-" + span + "-01":                       "",
		"00-00000000000000000000000000000000-" + span + "-01": "",
		"00-" + id + "-0000000000000000-01":                   "",
		"00-0AF7651916CD43DD8448EB211C80319C-" + span + "-01": "",
		"00-" + id + "-" + span + "-0g":                       "",
		"00-" + id + "-" + span:                               "",
		"":                                                    "",
	} {
		got, ok := tracing.Parse(s)
		is := map[bool]string{true: "sampled", false: "known"}[got.Sampled]
		if !ok {
			is = ""
		}
		if is != want {
			t.Errorf("%q is %q, want %q", s, is, want)
		}
		if ok {
			got.Client = got.Parent
			if again := tracing.Parent(got); again[:53] != s[:53] && s[:2] == "00" {
				t.Errorf("%q is written as %q", s, again)
			}
		}
	}
	if n := testing.AllocsPerRun(100, func() { tracing.Parse("00-" + id + "-" + span + "-01") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
