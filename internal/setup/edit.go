package setup

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/files"
)

// Remove returns a configuration without one of its servers. Everything else stays as it is.
func Remove(file, id string) ([]byte, error) {
	return edited(file, id, func([][]byte) [][]byte { return nil }, func(all []config.Server) []config.Server {
		return slices.DeleteFunc(all, func(s config.Server) bool { return s.ID == id })
	})
}

// Replace returns a configuration with other texts in the block of a server: replacements are pairs of old and new
// texts; each old text is in the block.
func Replace(file, id string, replacements ...string) ([]byte, error) {
	return edited(file, id, func(block [][]byte) [][]byte {
		text := string(bytes.Join(block, nil))
		return [][]byte{[]byte(strings.NewReplacer(replacements...).Replace(text))}
	}, func(all []config.Server) []config.Server { return all })
}

// edited changes the lines of a server. The result is checked: an edit by lines does not suit every way of writing
// YAML.
func edited(file, id string, change func(block [][]byte) [][]byte, want func([]config.Server) []config.Server) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	before, err := config.Load(file, config.Options{})
	if err != nil {
		return nil, err
	}
	byHand := fmt.Errorf("%s is written in a way that only a person can edit: change %s in it by hand. Nothing was written", file, id)
	lines := slices.Collect(bytes.Lines(data))
	first := tree.Line(file, "servers."+id) - 1
	if first < 0 || first >= len(lines) || !slices.Contains([]string{id + ":", `"` + id + `":`, "'" + id + "':"}, strings.Fields(string(lines[first]) + " -")[0]) {
		return nil, byHand
	}
	end := first + 1
	for end < len(lines) && (len(bytes.TrimSpace(lines[end])) == 0 || indent(lines[end]) > indent(lines[first])) {
		end++
	}
	for end > first+1 && len(bytes.TrimSpace(lines[end-1])) == 0 {
		end--
	}
	block := change(lines[first:end])
	out := bytes.Join(slices.Concat(lines[:first], block, lines[end:]), nil)
	if block == nil && len(before.Servers) == 1 {
		at := tree.Line(file, "servers") - 1
		lines[at] = bytes.Replace(lines[at], []byte("servers:"), []byte("servers: {}"), 1)
		out = bytes.Join(slices.Concat(lines[:first], lines[end:]), nil)
	}
	after, err := loaded(file, out)
	if err != nil {
		return nil, byHand
	}
	others := func(all []config.Server) []config.Server {
		return slices.DeleteFunc(slices.Clone(all), func(s config.Server) bool { return s.ID == id })
	}
	if len(after.Servers) != len(want(slices.Clone(before.Servers))) || !slices.EqualFunc(others(before.Servers), others(after.Servers), func(a, b config.Server) bool { return reflect.DeepEqual(a, b) }) {
		return nil, byHand
	}
	return out, nil
}

func indent(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

// loaded reads a configuration as it would be with another content.
func loaded(file string, content []byte) (*config.Config, error) {
	trial, err := Trial(file, content)
	if err != nil {
		return nil, err
	}
	defer os.Remove(trial)
	return config.Load(trial, config.Options{})
}

// Trial writes a changed configuration next to the file, so that its paths mean the same, and returns the path. The
// caller removes it.
func Trial(file string, content []byte) (string, error) {
	trial := file + ".trial.yaml"
	return trial, files.ReplaceSynced(trial, content, 0o600)
}

// Put writes a changed configuration.
func Put(file string, content []byte) error {
	return files.ReplaceSynced(file, content, files.Mode(file, 0o600))
}
