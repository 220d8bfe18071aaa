package config

import "time"

// A Notify is somebody who is told what a person should look at. One of Target.URL, Command
// and Desktop says how.
type Notify struct {
	Name      string
	About     []string // of approval, quarantine, server and audit; nil is all
	Arguments bool     // of calls that wait for approval, too
	Target
	Command []string // a program and its arguments, which gets each notice on standard input
	Desktop bool
}

// notices are what can be told.
var notices = []string{"approval", "quarantine", "server", "audit"}

func (d *decoder) notify(to *[]Notify, n *node, path string) {
	d.each(n, path, func(f field, path string) {
		one := Notify{Name: f.key, Target: Target{Timeout: 10 * time.Second}}
		if !bundlePattern.MatchString(f.key) {
			d.fail(&node{line: f.line}, path, "somebody is named by small letters, digits and . _ -")
		}
		d.table(f.value, path, map[string]reader{
			"url":       d.text(&one.URL, checkURL),
			"headers":   d.secrets(&one.Headers, checkHeader, checkHeaderValue),
			"private":   d.flag(&one.Private),
			"timeout":   d.duration(&one.Timeout, 100*time.Millisecond, 5*time.Minute),
			"command":   d.program(&one.Command),
			"desktop":   d.flag(&one.Desktop),
			"about":     d.texts(&one.About, among(notices)),
			"arguments": d.flag(&one.Arguments),
		})
		ways := 0
		for _, way := range []string{"url", "command", "desktop"} {
			if f.value.get(way) != nil {
				ways++
			}
		}
		if ways != 1 {
			d.fail(&node{line: f.line}, path, "has %d of url, command and desktop: write one", ways)
		}
		if u := f.value.get("url"); u != nil && insecure(one.URL) {
			d.warn(u.line, join(path, "url"), "plain http to another machine: notices, and headers, can be read on the way")
		}
		*to = append(*to, one)
	})
}
