package clients

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/pelletier/go-toml/v2"
)

// TOML and YAML are edited as text: a block is added or removed, and the caller compares what the two
// files say.

// with adds an entry to a table, and returns the block that it adds.
func (f Format) with(settings []byte, table, name string, entry map[string]any) (after []byte, block string, err error) {
	newline := "\n"
	if bytes.Contains(settings, []byte("\r\n")) {
		newline = "\r\n"
	}
	lines := func(text string) string { return strings.ReplaceAll(text, "\n", newline) }
	if len(settings) > 0 && !bytes.HasSuffix(settings, []byte("\n")) {
		settings = append(bytes.Clone(settings), newline...)
	}
	if f.Name == "toml" {
		body, err := toml.Marshal(entry)
		if err != nil {
			return nil, "", err
		}
		block = fmt.Sprintf("[%s.%s]\n%s", table, name, body)
		if len(settings) > 0 {
			return append(bytes.Clone(settings), lines("\n"+block)...), block, nil
		}
		return []byte(lines(block)), block, nil
	}
	body, err := yaml.MarshalWithOptions(entry, yaml.IndentSequence(true))
	if err != nil {
		return nil, "", err
	}
	head := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(table) + `:[ \t]*\r?\n`)
	at := head.FindIndex(settings)
	indent := "  "
	if at != nil {
		if child := regexp.MustCompile(`^(?:[ \t]*(?:#.*)?\r?\n)*([ ]+)[^ #\r\n]`).FindSubmatch(settings[at[1]:]); child != nil {
			indent = string(child[1])
		}
	}
	block = indent + name + ":\n" + indent + indent + strings.ReplaceAll(strings.TrimSuffix(string(body), "\n"), "\n", "\n"+indent+indent) + "\n"
	if at == nil {
		block = table + ":\n" + block
		return append(bytes.Clone(settings), lines(block)...), block, nil
	}
	return bytes.Join([][]byte{settings[:at[1]], []byte(lines(block)), settings[at[1]:]}, nil), block, nil
}

// without removes an entry of a table, if it is a block of its own.
func (f Format) without(settings []byte, table, name string) []byte {
	var out []byte
	inTable, inEntry, depth := false, false, 0
	quoted := `["']?` + regexp.QuoteMeta(name) + `["']?`
	tomlHead := regexp.MustCompile(`^\s*\[` + regexp.QuoteMeta(table) + `\.` + quoted + `(\..*)?\]`)
	yamlHead := regexp.MustCompile(`^( +)` + quoted + `:[ \t]*\r?\n?$`)
	for line := range bytes.Lines(settings) {
		text := bytes.TrimSpace(line)
		blank := len(text) == 0 || text[0] == '#'
		if f.Name == "toml" {
			if len(text) > 0 && text[0] == '[' {
				was := inEntry
				if inEntry = tomlHead.Match(line); inEntry && !was {
					out = bytes.TrimSuffix(bytes.TrimSuffix(out, []byte("\n")), []byte("\r")) // the line before it
					if len(out) > 0 && out[len(out)-1] != '\n' {
						out = append(out, '\n')
					}
				} else if was && len(out) > 0 {
					out = append(out, '\n')
				}
			}
			if !inEntry {
				out = append(out, line...)
			}
			continue
		}
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		if indent == 0 && !blank {
			inTable, inEntry = bytes.HasPrefix(line, []byte(table+":")), false
		}
		if head := yamlHead.FindSubmatch(line); inTable && head != nil && (!inEntry || indent <= depth) {
			inEntry, depth = true, indent
			continue
		}
		if inEntry && len(text) > 0 && indent <= depth {
			inEntry = false
		}
		if !inEntry {
			out = append(out, line...)
		}
	}
	return out
}
