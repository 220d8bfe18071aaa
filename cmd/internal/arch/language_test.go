package arch

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var shrink = flag.Bool("shrink", false, "lower the exceptions in testdata/language.txt to what the texts need")

// A bannedWord is a word that the project no longer uses, and the word to use instead.
type bannedWord struct {
	pattern *regexp.Regexp
	instead string
}

var bannedWords = []bannedWord{
	{regexp.MustCompile(`(?i)\bholes?\b`), "vulnerability, gap"},
	{regexp.MustCompile(`(?i)\bmend(s|ed|ing)?\b`), "fix"},
	{regexp.MustCompile(`(?i)\bmade inert\b`), "neutralized"},
	{regexp.MustCompile(`(?i)\banother than\b`), "different from"},
	{regexp.MustCompile(`(?i)\bnobody\b`), "no one"},
	{regexp.MustCompile(`(?i)\bwhoever\b`), "anyone who, callers that"},
	{regexp.MustCompile(`(?:^|[.;:] )Who [^?]*$`), "a noun as subject: callers that, a client that"},
	{regexp.MustCompile(`(?i)\bof which\b`), "a sentence of its own"},
	{regexp.MustCompile(`(?i)\bwhat of (it|them|the|a)\b`), "which"},
	{regexp.MustCompile(`(?i)\bstands? (in|beside)\b`), "is in, contains, is next to"},
	{regexp.MustCompile(`(?i)\b(is|are) told\b`), "gets, is reported"},
	{regexp.MustCompile(`(?i)\beras?\b`), "protocol revision: stateful, stateless"},
	{regexp.MustCompile(`(?i)\bit is to stand before\b`), "protects"},
	{regexp.MustCompile(`(?i)\bbeside\b`), "background, next to"},
	{regexp.MustCompile(`(?i)\bmade safe\b`), "sanitized"},
}

// maxWords is how many words a sentence that users read may have.
const maxWords = 30

// commandFile matches the files of commands: their texts are checked as documents are.
var commandFile = regexp.MustCompile(`^cmd/(wasmgate|internal/[a-z]+commands)/`)

// faults counts what a file has of each kind of fault: "words", "sentences" and "package".
// First is a place of one of them, for the message.
type faults struct {
	count map[string]int
	first map[string]string
}

func (f *faults) add(kind, what string) {
	if f.count == nil {
		f.count, f.first = map[string]int{}, map[string]string{}
	}
	if f.count[kind]++; f.first[kind] == "" {
		f.first[kind] = what
	}
}

// TestLanguage holds texts to the project's language: no word of the list above in documents,
// comments, messages and tests, no sentence of more than 30 words in documents (but docs/internals) and command texts,
// and package docs that begin "Package x does ...". Files that break a rule today are listed in
// testdata/language.txt; a count there may only shrink (-shrink lowers it).
func TestLanguage(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	found := map[string]*faults{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if name == "testdata" || name == "node_modules" || name == "dist" || name == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		f := &faults{}
		switch {
		case rel == "cmd/internal/arch/language_test.go":
			return nil
		case strings.HasSuffix(name, ".go"):
			err = readGo(f, path, rel)
		case strings.HasSuffix(name, ".md"):
			err = readMarkdown(f, path)
			if strings.HasPrefix(rel, "docs/internals/") { // which users need not read
				delete(f.count, "sentences")
			}
		}
		if f.count != nil {
			found[rel] = f
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	const list = "testdata/language.txt"
	allowed := readExceptions(t, list)
	for file, f := range found {
		for kind, n := range f.count {
			if most := allowed[file+" "+kind]; n > most {
				t.Errorf("%s: %d faults of %s, of at most %d; the first: %s", file, n, kind, most, f.first[kind])
			}
		}
	}
	if !*shrink {
		return
	}
	lower := map[string]int{}
	for key, most := range allowed {
		file, kind, _ := strings.Cut(key, " ")
		if f := found[file]; f != nil && f.count[kind] > 0 {
			lower[key] = min(most, f.count[kind])
		}
	}
	writeExceptions(t, list, lower)
}

func readGo(f *faults, path, rel string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, group := range file.Comments {
		text := strings.Join(strings.Fields(group.Text()), " ")
		findWords(f, text)
	}
	if doc := file.Doc.Text(); doc != "" && file.Name.Name != "main" && !strings.HasSuffix(path, "_test.go") {
		words := strings.Fields(doc)
		if len(words) < 3 || words[0] != "Package" || words[1] != file.Name.Name || !strings.HasSuffix(words[2], "s") || slices.Contains([]string{"has", "is", "says", "tells"}, words[2]) {
			f.add("package", strings.Join(words[:min(6, len(words))], " "))
		}
	}
	command := commandFile.MatchString(rel) && !strings.HasSuffix(rel, "_test.go")
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				findWords(f, text)
			}
		case *ast.KeyValueExpr: // Short and Long of a command
			if key, ok := n.Key.(*ast.Ident); ok && command && (key.Name == "Short" || key.Name == "Long") {
				findSentences(f, textOf(n.Value))
			}
		case *ast.CallExpr: // the usage of a flag is the last argument
			if f2, ok := n.Fun.(*ast.SelectorExpr); ok && command && len(n.Args) >= 3 && (strings.HasSuffix(f2.Sel.Name, "Var") || strings.HasSuffix(f2.Sel.Name, "VarP")) {
				findSentences(f, textOf(n.Args[len(n.Args)-1]))
			}
		}
		return true
	})
	return nil
}

// textOf joins the string literals of an expression.
func textOf(e ast.Expr) string {
	var text strings.Builder
	ast.Inspect(e, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			s, _ := strconv.Unquote(lit.Value)
			text.WriteString(s)
		}
		return true
	})
	return text.String()
}

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	listItem   = regexp.MustCompile(`^\s*([-*+]|\d+\.)\s+`)
)

// readMarkdown reads the paragraphs, list items, headings and table cells of a page. Blocks of
// code are no text.
func readMarkdown(f *faults, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var block []string
	end := func() {
		text := strings.Join(block, " ")
		block = nil
		findWords(f, text)
		findSentences(f, text)
	}
	fenced := false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			end()
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		line = linkTarget.ReplaceAllString(inlineCode.ReplaceAllString(line, "code"), "]")
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "":
			end()
		case strings.HasPrefix(trimmed, "|"):
			end()
			for cell := range strings.SplitSeq(trimmed, "|") {
				block = append(block, cell)
				end()
			}
		case strings.HasPrefix(trimmed, "#"):
			end()
			block = append(block, trimmed)
			end()
		case listItem.MatchString(line):
			end()
			block = append(block, listItem.ReplaceAllString(line, ""))
		default:
			block = append(block, trimmed)
		}
	}
	end()
	return nil
}

func findWords(f *faults, text string) {
	for _, w := range bannedWords {
		for _, at := range w.pattern.FindAllStringIndex(text, -1) {
			f.add("words", fmt.Sprintf("%q (use: %s)", text[max(0, at[0]-20):min(len(text), at[1]+20)], w.instead))
		}
	}
}

var sentenceEnd = regexp.MustCompile(`[.!?:]["')\]*_]*(\s+|$)|\n\n`)

func findSentences(f *faults, text string) {
	for _, s := range sentenceEnd.Split(text, -1) {
		if n := len(strings.Fields(s)); n > maxWords {
			f.add("sentences", fmt.Sprintf("%d words: %.90s ...", n, strings.Join(strings.Fields(s), " ")))
		}
	}
}

func readExceptions(t *testing.T, path string) map[string]int {
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	allowed := map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			continue
		}
		n, err := strconv.Atoi(fields[2])
		if err != nil {
			t.Fatalf("%s: %q: %v", path, lines.Text(), err)
		}
		allowed[fields[0]+" "+fields[1]] = n
	}
	return allowed
}

func writeExceptions(t *testing.T, path string, counts map[string]int) {
	var text strings.Builder
	for _, key := range slices.SortedFunc(maps.Keys(counts), cmp.Compare) {
		fmt.Fprintf(&text, "%s %d\n", key, counts[key])
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The rules find what they are about, and leave honest text alone.
func TestLanguageRules(t *testing.T) {
	for text, want := range map[string]int{
		"This mends a hole.":                     2,
		"Nobody is told.":                        2,
		"Who has no entry is refused.":           1,
		"The whole era":                          1,
		"the connection was lost; who called it": 0,
		"a menu of whole numbers":                0,
	} {
		f := &faults{}
		findWords(f, text)
		if f.count["words"] != want {
			t.Errorf("%q: %d words, want %d", text, f.count["words"], want)
		}
	}
	long := strings.Repeat("word ", maxWords)
	for text, want := range map[string]int{long + ".": 0, long + "more.": 1, long + ". " + long: 0} {
		f := &faults{}
		findSentences(f, text)
		if f.count["sentences"] != want {
			t.Errorf("%d words: %d sentences too long, want %d", len(strings.Fields(text)), f.count["sentences"], want)
		}
	}
}
