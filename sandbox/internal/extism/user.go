package extism

import (
	"context"
	"encoding/json"
	"fmt"
)

// answer makes a function of hyper-mcp that always gives the same answer. It does not look at its
// input.
func answer(document string) func(*Plugin, context.Context, []uint64) error {
	return func(p *Plugin, _ context.Context, stack []uint64) (err error) {
		stack[0], err = p.put([]byte(document))
		return err
	}
}

// drop makes a notification of hyper-mcp that is dropped.
func drop(name string) func(*Plugin, context.Context, []uint64) error {
	return func(p *Plugin, _ context.Context, _ []uint64) error {
		p.charge(0)
		p.log("debug", []byte(name+" is not supported: dropped"))
		return nil
	}
}

// levels are those of MCP's logging, by ours.
var levels = map[string]string{
	"debug": "debug", "info": "info", "notice": "info", "warning": "warn",
	"error": "error", "critical": "error", "alert": "error", "emergency": "error",
}

func notifyLoggingMessage(p *Plugin, _ context.Context, stack []uint64) error {
	b, err := p.get(stack[0])
	if err != nil {
		return err
	}
	var m struct {
		Level string          `json:"level"`
		Data  json.RawMessage `json:"data"`
	}
	if err := readJSON(b, &m); err != nil {
		return fmt.Errorf("read the message: %w", err)
	}
	level, ok := levels[m.Level]
	if !ok {
		return fmt.Errorf("a message of level %.20q, which MCP does not define", m.Level)
	}
	p.log(level, m.Data)
	return nil
}
