package sanitize

// The rules of findings. Those of markup begin with "html/".
const (
	ruleControl   = "control/c0"         // control characters, C1 included
	ruleTerminal  = "control/ansi"       // terminal sequences (ECMA-48)
	ruleTag       = "unicode/tag"        // tag characters
	ruleVariation = "unicode/variation"  // variation selectors that vary nothing
	ruleZeroWidth = "unicode/zero-width" // zero-width characters out of place
	ruleBidi      = "unicode/bidi"       // bidirectional controls
	ruleInvisible = "unicode/invisible"  // other characters without a shape
	ruleToken     = "token/chat"         // control tokens of chat templates
	ruleScript    = "html/script"        // elements that run or load a program or a page
	ruleElement   = "html/element"       // other elements that act on the page, and tags without an end
	ruleComment   = "html/comment"       // comments and declarations that hide text
	ruleHandler   = "html/handler"       // event handler attributes
	ruleURL       = "html/url"           // URLs that run
	ruleHidden    = "html/hidden"        // elements that hide what they hold
	ruleImage     = "link/image"         // what is fetched without a click, from places off the list
	ruleLink      = "link/target"        // links to places off the list
	rulePadding   = "text/padding"       // white space that pushes text out of view
	ruleReturn    = "control/return"
	ruleOverlay   = "unicode/overlay"   // marks that strike letters out, or pile up on them
	ruleFullwidth = "unicode/fullwidth" // full-width Latin outside of East Asian text
	ruleEscaped   = "html/escaped"      // escaped by profile strict
	rulePolicy    = "html/policy"       // rewritten by profile html
	ruleUnstable  = "text/unstable"
	ruleSize      = "text/size" // grown beyond its bound
)

// A Finding is something that was found in a text.
type Finding struct {
	Rule    string
	Count   int
	Removed bool // true: removed or neutralized; false: reported, and left in place
}

// findings counts, by rule and in the order in which rules were first met.
type findings struct {
	removed  []Finding
	reported []Finding
	max      int // see Options
}

func (f *findings) remove(rule string) { f.removed = count(f.removed, Finding{rule, 1, true}) }

func (f *findings) report(rule string) { f.reported = count(f.reported, Finding{rule, 1, false}) }

func count(list []Finding, f Finding) []Finding {
	for i := range list {
		if list[i].Rule == f.Rule {
			list[i].Count++
			return list
		}
	}
	return append(list, f)
}

func (f *findings) list() []Finding { return append(f.removed, f.reported...) }

// linkRule returns the rule of a link, or of what is fetched without a click.
func linkRule(fetched bool) string {
	if fetched {
		return ruleImage
	}
	return ruleLink
}
