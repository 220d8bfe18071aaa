package setup

import (
	"fmt"
	"slices"
	"strings"
)

// Next says what is left to do, in its order: explicit is the configuration that was named, url
// where the gateway listens, from the files that servers were taken of.
func (m Made) Next(explicit, url string, from []Source) (lines []string) {
	flag := ""
	if explicit != "" {
		flag = " --config " + m.File
	}
	if m.Missing != "" {
		lines = append(lines, fmt.Sprintf("add to %s: %s", m.File, m.Missing))
	}
	var variables []string
	for _, v := range m.Moved {
		if !slices.Contains(variables, v.Name) {
			variables = append(variables, v.Name)
		}
	}
	if len(variables) > 0 {
		lines = append(lines, "put the tokens into the environment of the gateway: "+strings.Join(variables, ", "))
	}
	if len(m.Left) > 0 {
		lines = append(lines, fmt.Sprintf("wasmgate grant %s%s    # one more tool; several by their names", m.Left[0].Tool, flag))
	}
	for _, id := range m.Added {
		if !m.grantedAll(id) {
			lines = append(lines, fmt.Sprintf("wasmgate grant --server %s%s    # all of %[1]s, also what changes something", id, flag))
		}
	}
	if !m.Running {
		lines = append(lines, fmt.Sprintf("wasmgate serve%s    # leave it running", flag))
	}
	var connected []string
	for _, s := range from {
		if s.ID != "" && !slices.Contains(connected, s.ID) {
			connected = append(connected, s.ID)
			lines = append(lines, fmt.Sprintf("wasmgate connect %s%s    # adds the gateway to its settings", s.ID, flag))
		}
		if !s.Own {
			lines = append(lines, fmt.Sprintf("remove %s from %s; otherwise the client can bypass the gateway", strings.Join(IDs(s.Servers), ", "), s.File))
		}
	}
	if len(connected) == 0 {
		lines = append(lines, fmt.Sprintf("wasmgate connect CLIENT%s    # or connect your client to %s", flag, url))
	}
	return lines
}

// grantedAll reports whether tools of a server were found, and all of them are granted.
func (m Made) grantedAll(id string) bool {
	of := func(tool string) bool { return strings.HasPrefix(tool, id+"__") }
	return slices.ContainsFunc(m.Granted, of) && !slices.ContainsFunc(m.Left, func(l Left) bool { return of(l.Tool) })
}

// Text says what was granted and what was left out, a line for each server.
func (m Made) Text() (lines []string) {
	if len(m.Granted) > 0 {
		lines = append(lines, m.Grants+" grants you the tools that only read:")
		lines = append(lines, byServer(m.Granted)...)
	} else {
		lines = append(lines, "no tool is granted to you")
	}
	var left []string
	for _, l := range m.Left {
		left = append(left, l.Tool)
	}
	if len(left) > 0 {
		lines = append(lines, "left out, since they may change something:")
		lines = append(lines, byServer(left)...)
	}
	return lines
}

// byServer returns a line for each server that has some of the tools, in their order.
func byServer(tools []string) (lines []string) {
	var last string
	for _, tool := range tools {
		server, name, _ := strings.Cut(tool, "__")
		if server == last {
			lines[len(lines)-1] += ", " + name
		} else {
			lines = append(lines, fmt.Sprintf("  %s: %s", server, name))
		}
		last = server
	}
	return lines
}
