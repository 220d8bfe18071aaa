package sanitize_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/sanitize"
)

// honestList names real files of the modules and packages that the repository pins: package and
// version, path, digest. It was drawn by honestSeed; every second line was not looked
// at while the rules were made.
const (
	honestList = "testdata/honest.txt"
	honestSeed = 20261122
	honestSize = 1500
)

// honestTypes are the types of the files, by their extensions. The latter half are
// markup, or hold it, by their nature.
var (
	honestTypes = []string{
		".go", ".js", ".mjs", ".cjs", ".ts", ".json", ".yaml", ".yml", ".toml", ".txt", ".c", ".h", ".rs", ".py", ".sh", ".java", ".css", ".proto", ".rego",
		".md", ".html", ".jsx", ".svg",
	}
	markupTypes = []string{".html", ".jsx", ".svg"}
)

// What makes a file of Markdown hold something active, told without the sanitizer.
var markdownActs = regexp.MustCompile(`(?i)!\[[^\]]*\]\(\s*<?(https?:)?//|!\[[^\]]*\]\s*\[|\]\(\s*<?[a-z+.-]+:[^)\s]*\?|(?m)^\s*\[[^\]]+\]:\s*<?[a-z]+:\S*\?|<[a-z!/?]`)

// Files that agents read are not harmed: as source by nothing but hidden characters,
// terminal sequences and tokens; as prose, of what holds nothing active, two in a
// hundred at most. WASMGATE_HONEST=draw draws the list anew.
func TestHonestFiles(t *testing.T) {
	roots := packages(t)
	if os.Getenv("WASMGATE_HONEST") == "draw" {
		drawHonest(t, roots)
	}
	list, err := os.ReadFile(honestList)
	if err != nil {
		t.Fatal(err)
	}
	type tally struct{ files, code, text, quiet, quietChanged int }
	byType := make(map[string]*tally)
	var held, tuned tally
	missing := 0
	for i, line := range strings.Split(strings.TrimSpace(string(list)), "\n") {
		part := strings.Split(line, "\t")
		b, err := os.ReadFile(filepath.Join(roots[part[0]], part[1]))
		if roots[part[0]] == "" || err != nil || digest(b) != part[2] {
			missing++
			continue
		}
		ext, in := filepath.Ext(part[1]), string(b)
		all := byType[ext]
		if all == nil {
			all = &tally{}
			byType[ext] = all
		}
		half := &tuned
		if i%2 == 1 {
			half = &held
		}
		all.files++
		if clean, found := new(t, sanitize.Code).Sanitize(in); clean != in {
			all.code++
			t.Logf("as code: %s %s: %v", part[0], part[1], found)
			if i := slices.IndexFunc(found, func(f sanitize.Finding) bool {
				group, _, _ := strings.Cut(f.Rule, "/")
				return !slices.Contains([]string{"control", "unicode", "token"}, group)
			}); i >= 0 {
				t.Errorf("%s %s: changed by %s", part[0], part[1], found[i].Rule)
			}
		}
		quiet := !slices.Contains(markupTypes, ext) && (ext != ".md" || !markdownActs.MatchString(in))
		if quiet {
			all.quiet++
			half.quiet++
		}
		if clean, found := new(t, sanitize.Text).Sanitize(in); clean != in {
			all.text++
			if quiet {
				all.quietChanged++
				half.quietChanged++
				t.Logf("as text: %s %s: %v at %q", part[0], part[1], found, firstChange(in, clean))
			}
		}
	}
	total := tuned.quiet + held.quiet
	if len(byType) == 0 || missing > honestSize/2 {
		t.Skipf("%d of the listed files are not on this machine: go mod download and npm ci --prefix .ci/node fetch them", missing)
	}
	t.Logf("%-7s %5s %9s %9s   %s", "type", "files", "as code", "as text", "of those that hold nothing active")
	for _, ext := range slices.Sorted(maps.Keys(byType)) {
		a := byType[ext]
		t.Logf("%-7s %5d %9d %9d   %d of %d", ext, a.files, a.code, a.text, a.quietChanged, a.quiet)
	}
	t.Logf("%d files are not here; of %d that hold nothing active %d are changed as text; of the half that was looked at %d of %d, of the other %d of %d",
		missing, total, tuned.quietChanged+held.quietChanged, tuned.quietChanged, tuned.quiet, held.quietChanged, held.quiet)
	for _, half := range []tally{tuned, held} {
		if half.quietChanged*50 > half.quiet {
			t.Errorf("%d of %d files that hold nothing active are changed: more than 2 %%", half.quietChanged, half.quiet)
		}
	}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

func firstChange(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return strings.ToValidUTF8(b[max(0, i-20):min(len(b), i+40)], "?")
}

// packages returns the folders of the modules and packages that the repository pins,
// by name and version.
func packages(t *testing.T) map[string]string {
	t.Helper()
	roots := make(map[string]string)
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-e", "-f", "{{.Path}}@{{.Version}}\t{{.Dir}}", "all").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		name, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if dir != "" && !strings.HasSuffix(name, "@") {
			roots[name] = dir
		}
	}
	b, err := os.ReadFile("../.ci/node/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	if err := json.Unmarshal(b, &lock); err != nil {
		t.Fatal(err)
	}
	for path, p := range lock.Packages {
		if path != "" {
			roots["npm:"+strings.TrimPrefix(path, "node_modules/")+"@"+p.Version] = filepath.Join("../.ci/node", path)
		}
	}
	return roots
}

func drawHonest(t *testing.T, roots map[string]string) {
	t.Helper()
	byType := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(roots)) {
		root := roots[name]
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if d.IsDir() && d.Name() == "node_modules" && path != root {
				return fs.SkipDir
			}
			ext := filepath.Ext(path)
			info, err := d.Info()
			if err != nil || !d.Type().IsRegular() || !slices.Contains(honestTypes, ext) || info.Size() > 200<<10 || info.Size() == 0 {
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil || !utf8.Valid(b) {
				return nil
			}
			rel, _ := filepath.Rel(root, path)
			byType[ext] = append(byType[ext], fmt.Sprintf("%s\t%s\t%s", name, filepath.ToSlash(rel), digest(b)))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(honestSeed, honestSeed))
	var lines []string
	types := slices.Clone(honestTypes)
	slices.SortFunc(types, func(a, b string) int { return cmp.Compare(len(byType[a]), len(byType[b])) })
	for i, ext := range types {
		all := byType[ext]
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		share := (honestSize - len(lines)) / (len(types) - i)
		lines = append(lines, all[:min(len(all), share)]...)
	}
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	if err := os.WriteFile(honestList, bytes.Join([][]byte{[]byte(strings.Join(lines, "\n")), nil}, []byte("\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}
