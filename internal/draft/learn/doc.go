// Package learn proposes what a policy could be, for a person to review: labels of tools, as
// a labels file has them, and of what was recorded the grants that it needed, with the
// arguments narrowed to what was seen. It writes nothing, and what it proposes allows
// nothing that the recorded calls do not show.
package learn
