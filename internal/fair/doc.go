// Package fair shares a bounded number of things among callers, such that none of them can keep
// the others from what they need.
//
// A [Bound] counts what its callers have, and says who may have more. A [Queue] lets calls wait
// for what they may not have yet.
package fair
