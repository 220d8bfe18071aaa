// Package doctor looks a set-up over: what would keep a gateway from running on a configuration,
// or from doing what its operator expects, and what to do about it. It changes nothing but what
// a start changes.
//
// [Look] asks a gateway that runs, by [app.Dial], or starts the servers once itself; doctor.go has
// its checks and their text. upgrade.go finds what means something else than it did to an earlier
// version, a row of UPGRADING.md each.
package doctor
