// Package doctor looks a set-up over: what would keep a gateway from running on a configuration,
// or from doing what its operator expects, and what to do about it. It changes nothing but what
// a start changes.
package doctor
