package listing

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// maxOffered is how long a name may be that is offered to clients: model
// providers accept [A-Za-z0-9_-]{1,64}.
const maxOffered = 64

var (
	legal   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	illegal = regexp.MustCompile(`[^A-Za-z0-9_-]`)
)

// brailleBlank is a symbol to Unicode, and looks like a space.
const brailleBlank = '\u2800'

// maxDefinition bounds one definition, in bytes: it goes into the context of models.
const maxDefinition = 1 << 20

// checkSize refuses definitions that no model could read.
func checkSize(def gate.Doc) error {
	if n := len(def.Raw()); n > maxDefinition {
		return fmt.Errorf("its definition has %s, more than the %s that are allowed, so the tool is not offered", mcp.Bytes(int64(n)), mcp.Bytes(maxDefinition))
	}
	return nil
}

// checkLocal refuses names that cannot be shown for what they are.
func checkLocal(name string) error {
	if name == "" {
		return fmt.Errorf("the tool has no name")
	}
	if utf8.RuneCountInString(name) > mcp.MaxName {
		return fmt.Errorf("the name has more than %d characters", mcp.MaxName)
	}
	return checkShown("its name", name)
}

// checkShown refuses what has characters that a reader would not see.
func checkShown(what, text string) error {
	for _, r := range text {
		if !unicode.IsGraphic(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) ||
			unicode.IsSpace(r) && r != ' ' || r == brailleBlank {
			return fmt.Errorf("%s has a hidden character, %U", what, r)
		}
	}
	return nil
}

// mangled makes the name one of the letters that clients accept. If that name is
// another tool's, six hex digits of the tool's digest tell them apart.
func mangled(local, digest string, taken map[string]bool) string {
	if legal.MatchString(local) {
		return local
	}
	name := illegal.ReplaceAllString(local, "_")
	if taken[name] {
		name += "_" + digest[:6]
	}
	taken[name] = true
	return name
}

// Shorten keeps an offered name within maxOffered.
func Shorten(name, digest string) string {
	if len(name) <= maxOffered {
		return name
	}
	return name[:maxOffered-7] + "_" + digest[:6]
}

// offeredName returns the name by which clients know what a server has named.
func offeredName(name gate.ToolName, digest string, bare bool) string {
	if bare && !strings.Contains(name.Tool, "__") { // else it could pass for another server's
		return Shorten(name.Tool, digest)
	}
	return Shorten(name.String(), digest)
}
