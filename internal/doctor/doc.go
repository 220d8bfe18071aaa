// Package doctor checks an installation: it reports faults that keep a gateway from running on a
// configuration, or from doing what its operator expects, and says how to fix each. It changes
// nothing but what a start changes.
//
// [Look] asks a gateway that runs, by [app.Dial], or starts the servers once itself.
package doctor
