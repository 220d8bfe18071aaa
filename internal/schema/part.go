package schema

import "github.com/santhosh-tekuri/jsonschema/v6"

// A part is a schema and what it leads to, as far as it matters for what
// checking costs.
type part struct {
	work
	of         *jsonschema.Schema
	inPlace    []*part          // apply to the same value
	properties map[string]*part // apply to a member
	patterns   []patternPart    // apply to members
	members    []*part          // apply to every member
	names      *part            // applies to the names of members
	prefix     map[int]*part    // apply to an item
	items      []*part          // apply to every item
	each       *part            // what items says of every item, if there is no tuple
}

// work is what a schema costs by itself.
type work struct {
	units   int        // whatever it meets
	numbers comparison // what a number is compared with
	steps   int        // of its pattern, a character
	unique  bool       // compares items with each other
	dynamic bool       // looks through all schemas under way
}

type patternPart struct {
	steps int
	part  *part
}

// comparison is the work of comparing numbers, which the validator does in
// exact fractions.
type comparison struct{ n, digits int }
