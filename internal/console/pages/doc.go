// Package pages writes the pages of the console, each in one frame with the navigation.
//
// Texts of servers and callers are shown by package escaped and escaped by html/template; no page
// runs a script but one of ours, and all of them work without it. What package pages draws is text and numbers,
// escaped here: charts of calls over time (chart.go) and pictures of what a session has read and done (picture.go).
package pages
