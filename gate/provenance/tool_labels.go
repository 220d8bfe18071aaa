package provenance

import "strings"

// ToolLabels are the operator's description of a tool: what its results are, what it does, and by
// which arguments an attacker could turn it against the user.
type ToolLabels struct {
	Result  ResultKind
	Private bool // results hold what is not for everybody
	// Kind says what the texts of results are; "" leaves that to the names of the files that
	// a call reads.
	Kind    TextKind
	Effects []ToolEffect
	// Control are JSON Pointers into the arguments: to whom, or on what, the tool
	// acts. Each stands for all below it. Nil means that all arguments are.
	Control []string
	// Content are JSON Pointers to arguments that the tool gives to others. Nil
	// means all that are not in Control, To or Commits.
	Content []string
	// To are JSON Pointers to arguments that say to whom or where, Commits to those that
	// say when, how much, and which of several. With either, an argument that is named
	// nowhere is one of To, and Control is more of To.
	To, Commits []string
	// Takes says which kind of ids an argument takes, by its JSON Pointer, in which * stands for
	// every element and member; "" says that it takes none.
	Takes map[string]string
	// IDs says which places of a result hold ids, and of what kind: see [Place]. Such an id is a
	// destination for arguments that take its kind, at the same server only: one of the kind
	// [Recipient] also for tools that reach others.
	IDs map[Place]string
	// Identity are places of a result that hold the parties of a record, as the server
	// knows them; Names are those that hold the names by which people call the record.
	Identity, Names []Place
	// Own are places of a result that is the record of the account holder: what they hold is the
	// user's own, and so are the ids in the result. DestroysOwn lets the tool act on these ids.
	Own         []Place
	DestroysOwn bool
	// Makes are JSON Pointers to arguments that name what the call makes.
	Makes []string
}

// A TextKind says what the texts of a result are. It follows from where they come from,
// never from how they look: an attacker can write a page as if it were source.
type TextKind string

// The kinds of texts. The zero TextKind is KindProse.
const (
	KindProse TextKind = "prose" // a reader shows it: whatever acts in it is neutralized
	KindCode  TextKind = "code"  // source, where every byte counts
)

// A ResultKind says who may have written a tool's results. The zero ResultKind is
// ResultUntrusted.
type ResultKind string

// The kinds of results.
const (
	ResultUntrusted ResultKind = "untrusted" // an outsider may have
	ResultTrusted   ResultKind = "trusted"   // no outsider could
	ResultEcho      ResultKind = "echo"      // it repeats its arguments
)

// A ToolEffect is something that a tool does.
type ToolEffect string

// The effects of tools.
const (
	EffectRead        ToolEffect = "read"        // nothing changes
	EffectLocal       ToolEffect = "local"       // changes what the user has on the machine
	EffectInternal    ToolEffect = "internal"    // changes what the user has elsewhere
	EffectExternal    ToolEffect = "external"    // reaches other people
	EffectDestructive ToolEffect = "destructive" // what is lost is lost
	EffectEgress      ToolEffect = "egress"      // sends data to an address
	EffectCredential  ToolEffect = "credential"  // changes who has access
)

// ToolEffects returns all effects of tools.
func ToolEffects() []ToolEffect {
	return []ToolEffect{EffectRead, EffectLocal, EffectInternal, EffectExternal, EffectDestructive, EffectEgress, EffectCredential}
}

// eachPlace yields the labelled places of results.
func (l ToolLabels) eachPlace(yield func(Place) bool) {
	for place := range l.IDs {
		if !yield(place) {
			return
		}
	}
	for _, places := range [...][]Place{l.Identity, l.Names, l.Own} {
		for _, place := range places {
			if !yield(place) {
				return
			}
		}
	}
}

// places reports whether anything is said of places in results.
func (l ToolLabels) places() bool { return len(l.IDs)+len(l.Identity)+len(l.Names)+len(l.Own) > 0 }

// to reports whether the argument at a pointer says to whom or where.
func (l ToolLabels) to(pointer string) bool {
	switch {
	case l.To == nil && l.Commits == nil:
		return l.Control == nil || below(pointer, l.Control)
	case below(pointer, l.To) || below(pointer, l.Control):
		return true
	}
	return !below(pointer, l.Commits) && !below(pointer, l.Content)
}

// KindOf returns the kind of the ids that the argument at a pointer takes, or "".
func KindOf(l ToolLabels, pointer string) string {
	for root, kind := range l.Takes {
		if kind != "" && matches(pointer, root) {
			return kind
		}
	}
	return ""
}

// matches reports whether a pointer is at or below one in which * stands for any name.
func matches(pointer, root string) bool {
	if !strings.Contains(root, "*") {
		rest, ok := strings.CutPrefix(pointer, root)
		return ok && (rest == "" || rest[0] == '/')
	}
	names, roots := strings.Split(pointer, "/"), strings.Split(root, "/")
	if len(names) < len(roots) {
		return false
	}
	for i, name := range roots {
		if name != "*" && name != names[i] {
			return false
		}
	}
	return true
}

// below reports whether a pointer is one of roots, or below one.
func below(pointer string, roots []string) bool {
	for _, root := range roots {
		if rest, ok := strings.CutPrefix(pointer, root); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// Teaches returns the labels that a session gets from a result. The result of a tool that repeats
// its arguments teaches nothing that the session has not read.
func Teaches(l ToolLabels) Labels {
	var names []string
	switch l.Result {
	case ResultTrusted, ResultEcho:
	default:
		names = append(names, Untrusted)
	}
	if l.Private {
		names = append(names, Private)
	}
	return NewLabels(names...)
}
