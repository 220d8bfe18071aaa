package lookalike_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/lookalike"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

func TestSkeleton(t *testing.T) {
	for name, tt := range map[string]struct{ a, b string }{
		"Cyrillic letters":                {"\u0440\u0430\u0443\u0440\u0430l", "paypal"},
		"Greek letters":                   {"\u03bfpen", "open"},
		"full-width letters":              {"\uff52\uff45\uff41\uff44\uff3f\uff42", "read_b"},
		"mathematical letters":            {"\U0001d42b\U0001d41e\U0001d41a\U0001d41d", "read"},
		"a digit and a letter":            {"paypa1", "paypal"},
		"two letters that look like one":  {"rnail", "mail"},
		"an accent, composed and not":     {"r\u00e9ad", "re\u0301ad"},
		"a character that has no shape":   {"re\u200bad", "read"},
		"a hyphen of another kind":        {"a\u2010b", "a-b"},
		"a Cyrillic letter with a stroke": {"\u0455end", "send"},
	} {
		if a, b := lookalike.Skeleton(tt.a), lookalike.Skeleton(tt.b); a != b {
			t.Errorf("%s: %+q and %+q", name, a, b)
		}
	}
	for _, s := range []string{"read", "get_x", "Ünder"} {
		if a, b := lookalike.Skeleton(s), lookalike.Skeleton("other_"+s); a == b {
			t.Errorf("%s is as all others", s)
		}
	}
}

// The skeleton of a character is a skeleton.
func TestSkeletonsAreTheirOwn(t *testing.T) {
	for r := rune(0x20); r < 0x20000; r++ {
		s := lookalike.Skeleton(string(r))
		if again := lookalike.Skeleton(s); again != s {
			t.Errorf("%U: %+q, and then %+q", r, s, again)
		}
	}
	table, err := os.ReadFile("table.txt")
	if head, _, _ := strings.Cut(string(table), "\n"); err != nil || !strings.Contains(head, " of Unicode "+lookalike.UnicodeVersion+",") {
		t.Errorf("the table is not of Unicode %s: %q: %v", lookalike.UnicodeVersion, head, err)
	}
}

func TestAlike(t *testing.T) {
	tests := map[string]struct {
		a, b       string
		alike      bool
		confusable bool // too, whatever is one letter apart
	}{
		"other characters of one shape": {"read_file", "re\u0430d_file", true, true},
		"case":                          {"readfile", "ReadFile", true, true},
		"a capital i for a small l":     {"paypal", "paypaI", true, true},
		"a hyphen for a line":           {"read-file", "read_file", true, true},
		"camel case":                    {"read_file", "readFile", true, true},
		"case and another script":       {"Read_File", "re\u0430dfile", true, true},
		"one letter":                    {"github", "githab", true, false},
		"one letter more":               {"github", "githubb", true, false},
		"one letter less":               {"gihub", "github", true, false},
		"two that changed places":       {"gihtub", "github", true, false},
		"one letter, in another script": {"g\u0456thab", "github", true, false},
		"the same":                      {"github", "github", false, false},
		"nothing in common":             {"github", "slack", false, false},
		"two letters":                   {"github", "gathab", false, false},
		"another first letter":          {"get_x_now", "set_x_now", false, false},
		"another first letter, camel":   {"fileGet", "fileSet", false, false},
		"lists of a and b":              {"list_a", "list_b", false, false},
		"a plural":                      {"read_file", "read_files", false, false},
		"a plural within":               {"list_file_ids", "list_files_ids", false, false},
		"a version":                     {"search_v1", "search_v2", false, false},
		"a number more":                 {"server", "server2", false, false},
		"short words":                   {"mail", "main", false, false},
		"long names":                    {"list_repository_issue_types", "list_repository_issue_typed", false, false},
		"empty":                         {"", "a", false, false},
		"separators alone":              {"-", "_", false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, p := range [][2]string{{tt.a, tt.b}, {tt.b, tt.a}} {
				if why, got := lookalike.Alike(p[0], p[1]); got != tt.alike || got != (why != "") {
					t.Errorf("Alike(%+q, %+q) = %q, %t", p[0], p[1], why, got)
				}
				if why, got := lookalike.Confusable(p[0], p[1]); got != tt.confusable || got != (why != "") {
					t.Errorf("Confusable(%+q, %+q) = %q, %t", p[0], p[1], why, got)
				}
				var x lookalike.Index
				x.Add("unrelated_name")
				x.Add(p[0])
				if other, _, got := x.Alike(p[1], nil); got != tt.alike || got && other != p[0] {
					t.Errorf("the index finds %+q like %+q: %t", other, p[1], got)
				}
				if _, _, got := x.Confusable(p[1]); got != tt.confusable {
					t.Errorf("the index finds %+q confusable: %t", p[1], got)
				}
			}
		})
	}
}

func TestSameShape(t *testing.T) {
	var x lookalike.Index
	x.Add("read_file")
	for name, want := range map[string]bool{"re\u0430d_file": true, "read_file": false, "readFile": false, "read-file": false, "read_fi1e": true} {
		if other, _, got := x.SameShape(name); got != want || got && other != "read_file" {
			t.Errorf("%+q: %q, %t", name, other, got)
		}
	}
	if _, _, ok := x.Alike("reed_file", func(other string) bool { return other == "read_file" }); ok {
		t.Error("a name that is left out is found")
	}
	var none lookalike.Index
	if _, _, ok := none.Alike("read_file", nil); ok {
		t.Error("an empty index finds something")
	}
}

// The index finds what a look at each name finds.
func TestIndexAgreesWithAlike(t *testing.T) {
	r := seed.Rand(t)
	letters := []rune("aabbcs1I_-\u0430C")
	name := func() string {
		s := make([]rune, 4+r.IntN(4))
		for i := range s {
			s[i] = letters[r.IntN(len(letters))]
		}
		return string(s)
	}
	found := 0
	for range 500 {
		var x lookalike.Index
		var names []string
		for range 20 {
			n := name()
			if _, _, alike := x.Alike(n, nil); !alike { // as a catalog is made
				x.Add(n)
				names = append(names, n)
			}
		}
		for range 20 {
			n, want := name(), false
			for _, other := range names {
				_, alike := lookalike.Alike(other, n)
				want = want || alike
			}
			if other, _, got := x.Alike(n, nil); got != want {
				t.Fatalf("%+q: the index finds %+q, %t; among %+q", n, other, got, names)
			}
			if want {
				found++
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d names were like another", found)
	}
}

// BenchmarkIndex looks up and adds names that mostly differ in one letter: the time for each grows less
// than their number.
func BenchmarkIndex(b *testing.B) {
	for _, names := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(names), func(b *testing.B) {
			for b.Loop() {
				var x lookalike.Index
				for i := range names {
					n := fmt.Sprintf("aaaa%c%caaaa_%c", 'a'+rune(i%26), 'a'+rune(i/26%26), 'a'+rune(i/676%26))
					x.Alike(n, nil)
					x.Add(n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(names), "ns/name")
		})
	}
}

// No two tools of real servers look alike, whether they are of one server or of
// several: names are the only thing these rules may not get wrong.
func TestNamesOfTheCorpus(t *testing.T) {
	dir := os.Getenv("WASMGATE_CORPUS")
	if dir == "" {
		t.Skip("WASMGATE_CORPUS is not set: it names the folder of the test corpora")
	}
	b, err := os.ReadFile(filepath.Join(dir, "corpora", "tools", "benign.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all lookalike.Index
	servers, n := make(map[string]*lookalike.Index), 0
	for line := range strings.Lines(string(b)) {
		var d struct{ Source, Name string }
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatal(err)
		}
		if servers[d.Source] == nil {
			servers[d.Source] = new(lookalike.Index)
		}
		if other, why, ok := servers[d.Source].Confusable(d.Name); ok {
			t.Errorf("%s: %s looks like %s: %s", d.Source, d.Name, other, why)
		}
		if other, why, ok := all.Alike(d.Name, nil); ok {
			t.Errorf("%s looks like %s: %s", d.Name, other, why)
		}
		servers[d.Source].Add(d.Name)
		all.Add(d.Name)
		n++
	}
	t.Logf("%d tools of %d servers", n, len(servers))
	if n < 700 {
		t.Errorf("%d tools: the corpus is not whole", n)
	}
}

func FuzzAlike(f *testing.F) {
	f.Add("read_file", "re\u0430dFile")
	f.Add("\xff\xfe", "\u0130\u0307")
	f.Fuzz(func(t *testing.T, a, b string) {
		_, ab := lookalike.Alike(a, b)
		_, ba := lookalike.Alike(b, a)
		if ab != ba {
			t.Errorf("%+q is like %+q: %t, and the other way: %t", a, b, ab, ba)
		}
		var x lookalike.Index
		x.Add(a)
		if _, _, got := x.Alike(b, nil); got != ab {
			t.Errorf("the index says %t of %+q and %+q, Alike says %t", got, a, b, ab)
		}
	})
}
