package bridge

import "slices"

// A severity is that of a log message; the zero severity is that of none.
type severity int

// severities are the levels of MCP from the least severe, which is 1 (RFC 5424, section
// 6.2.1, in the words of MCP 2025-11-25, server/utilities/logging).
var severities = []string{"", "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// severityOf returns the severity of a level; 0 if there is no such level.
func severityOf(level string) severity { return severity(max(0, slices.Index(severities, level))) }

func (s severity) String() string { return severities[s] }
