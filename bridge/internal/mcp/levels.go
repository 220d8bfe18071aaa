package mcp

import "slices"

// A Severity is that of a log message; the zero severity is that of none.
type Severity int

// Severities are the levels of MCP from the least severe, which is 1 (RFC 5424, section
// 6.2.1, in the words of MCP 2025-11-25, server/utilities/logging).
var Severities = []string{"", "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// SeverityOf returns the severity of a level; 0 if there is no such level.
func SeverityOf(level string) Severity { return Severity(max(0, slices.Index(Severities, level))) }

func (s Severity) String() string { return Severities[s] }
