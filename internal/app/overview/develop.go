package overview

import (
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
)

// Developed says how the modules are that their author works on, a line for each, and
// what of their tools is quarantined.
func (o *Overview) Developed() (lines []string) {
	servers := o.Pins.Describe(o.Gateway.Fleet().Status())
	var of []string // servers
	for _, m := range o.Gateway.Modules() {
		if !m.Development {
			continue
		}
		of = append(of, m.Server)
		switch {
		case m.Error != "":
			lines = append(lines, fmt.Sprintf("%s: left out: %s", m.Module, m.Error))
		case m.Progress != "":
			lines = append(lines, m.Module+": "+m.Progress)
		case m.Note != "":
			lines = append(lines, m.Module+": "+m.Note)
		default:
			lines = append(lines, fmt.Sprintf("%s: in use; its tools: %d", m.Module, m.Tools))
		}
	}
	for _, s := range o.Settings.Config().Servers {
		if s.Module.Dev {
			of = append(of, s.ID)
		}
	}
	for _, s := range servers {
		if !slices.Contains(of, s.Server) {
			continue
		}
		if !s.Local {
			lines = append(lines, fmt.Sprintf("%s: %s", s.Server, s.Phase))
		}
		if s.Fault != "" {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", s.Server, s.Fault, s.Error))
		}
		for _, n := range s.Notes {
			if n.Quarantined {
				lines = append(lines, s.Server+": "+quarantined(n))
			}
		}
	}
	return lines
}

func quarantined(n status.Note) string {
	if n.Tool == "" {
		return n.Text
	}
	return n.Tool + ": " + n.Text
}
