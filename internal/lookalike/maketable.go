//go:build ignore

// Maketable writes table.txt from Unicode's confusables.txt, which is published
// at https://www.unicode.org/Public/security/. Run it in this folder, with the
// file in it:
//
//	go generate
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

func main() {
	in := flag.String("in", "confusables.txt", "Unicode's file")
	out := flag.String("out", "table.txt", "where to write")
	flag.Parse()
	prototypes, version, err := read(*in)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*out, table(prototypes, version), 0o644); err != nil {
		log.Fatal(err)
	}
}

var versionLine = regexp.MustCompile(`^# Version: (\S+)`)

// read returns the prototype of each character that has one.
func read(path string) (prototypes map[rune]string, version string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	prototypes = make(map[rune]string)
	for s := bufio.NewScanner(f); s.Scan(); {
		if m := versionLine.FindStringSubmatch(s.Text()); m != nil {
			version = m[1]
		}
		line, _, _ := strings.Cut(strings.TrimPrefix(s.Text(), "\ufeff"), "#")
		fields := strings.Split(line, ";")
		if len(fields) < 2 {
			continue
		}
		from, err := characters(fields[0])
		if err != nil {
			return nil, "", err
		}
		to, err := characters(fields[1])
		if err != nil {
			return nil, "", err
		}
		prototypes[[]rune(from)[0]] = to
	}
	if version == "" || len(prototypes) == 0 {
		return nil, "", fmt.Errorf("%s is not confusables.txt", path)
	}
	return prototypes, version, nil
}

// characters reads code points in hexadecimal.
func characters(s string) (string, error) {
	var b strings.Builder
	for _, word := range strings.Fields(s) {
		n, err := strconv.ParseUint(word, 16, 32)
		if err != nil {
			return "", err
		}
		b.WriteRune(rune(n))
	}
	return b.String(), nil
}

// table writes the characters in scope whose skeleton is another text, one in a line,
// in the order of code points.
func table(prototypes map[rune]string, version string) []byte {
	skeletons := make(map[rune]string)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		s := skeleton(string(r), prototypes)
		if s != string(r) && (unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic) || wide(r) || plain(s)) {
			skeletons[r] = s
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# confusables.txt of Unicode %s, made smaller by maketable.go; do not edit.\n", version)
	b.WriteString("# © Unicode, Inc. The data is modified: see LICENSE-UNICODE beside this file.\n")
	var order []rune
	for r := range skeletons {
		order = append(order, r)
	}
	slices.Sort(order)
	for _, r := range order {
		fmt.Fprintf(&b, "%04x", r)
		for _, to := range skeletons[r] {
			fmt.Fprintf(&b, " %04x", to)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// skeleton is that of UTS 39, section 4, taken until it is its own: a few
// prototypes decompose into what has one. Full-width characters are those that
// they are the wide form of, which UTS 39 says of some alone.
func skeleton(s string, prototypes map[rune]string) string {
	var b strings.Builder
	for _, r := range norm.NFD.String(s) {
		if wide(r) {
			r = []rune(norm.NFKD.String(string(r)))[0]
		}
		if to, ok := prototypes[r]; ok {
			b.WriteString(to)
		} else {
			b.WriteRune(r)
		}
	}
	if again := norm.NFD.String(b.String()); again != s {
		return skeleton(again, prototypes)
	}
	return s
}

func wide(r rune) bool { return r >= 0xff01 && r <= 0xff5e }

// plain reports whether a skeleton is of the characters that names of tools are
// made of.
func plain(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
	}) < 0
}
