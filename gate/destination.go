package gate

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate/provenance"
)

// destinationKeeper is a [Sessions] that keeps destinations which a person has approved.
type destinationKeeper interface {
	// Approve has a session keep destinations until it ends. A destination that it has already is
	// not kept twice.
	Approve(ctx context.Context, k SessionKey, all []Destination) error
}

// unnamed returns the destinations of a call (the values that say to whom or where) that no trusted
// source has named, and where the session has met its values.
func (p *Parts) unnamed(q Query) (destinations []string, origins map[string][]provenance.Origin) {
	known := p.known(q)
	for a := range known.Arguments(q.Tool.Definition, q.Call.Args) {
		if a.Form == "" {
			continue
		}
		if met := known.Origins(a); met != nil {
			if origins == nil {
				origins = make(map[string][]provenance.Origin)
			}
			origins[a.Pointer] = met
		}
		if provenance.IsTo(known, a) && !a.Source.Trusted() && !a.Near && !slices.Contains(destinations, a.Form) {
			destinations = append(destinations, a.Form)
		}
	}
	return destinations, origins
}

// plainName is a name such as schemas give to members. Others can be what a server or a
// caller has written, which has no place in a record.
var plainName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]{0,23}|[0-9]{1,6})$`)

// met says in words where a session has met the values of a call, sorted.
func met(origins map[string][]provenance.Origin) (said []string) {
	place := func(pointer string) string {
		names := strings.Split(pointer, "/")
		for i, name := range names[1:] {
			if !plainName.MatchString(name) {
				names[i+1] = "*"
			}
		}
		return strings.Join(names, "/")
	}
	for at, all := range origins {
		for _, o := range all {
			of := "its arguments"
			if o.Tool != "" {
				of = cmp.Or(place(o.Pointer), "/") + " of " + o.Tool
			} else if o.Source == provenance.FromPrompt.Names()[0] {
				of = "the prompt"
			}
			said = append(said, fmt.Sprintf("%s: %s, at %s in call %s", place(at), o.Source, of, o.Call))
		}
	}
	slices.Sort(said)
	return slices.Compact(said)
}

// approveDestinations has the session of a call keep those that a person has approved with it.
func (w *way) approveDestinations(ctx context.Context, q Query, a Approval) error {
	keeper, ok := w.Sessions.(destinationKeeper)
	if !ok {
		return nil
	}
	var all []Destination
	for _, v := range a.Destinations {
		all = append(all, Destination{ID: a.ID, Server: q.Tool.Name.Server, Value: v, By: a.By, Since: time.Now(), Session: q.Call.Session})
	}
	if len(all) == 0 {
		return nil
	}
	return keeper.Approve(ctx, q.Call.Session, all)
}

// known is what the session of a call knows of where values came from, with what more
// holds for the call.
func (p *Parts) known(q Query) provenance.Provenance {
	var approved []string
	for _, d := range q.Session.Destinations {
		if d.Server == q.Tool.Name.Server {
			approved = append(approved, d.Value)
		}
	}
	values := q.Session.Values
	if q.FromApp() { // the page chose them, whatever the person or the model has said
		values = provenance.Provenance{}.Lost()
	}
	return provenance.For(values, q.Tool.Name.Server, p.said(q.Tool), q.Call.own(), approved)
}
