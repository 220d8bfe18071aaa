package hosts

import (
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/decode"
)

// keys are the keys that are honoured, and what they are called here.
var keys = map[string]string{
	"command": "command", "args": "args", "env": "env", "cwd": "cwd", "headers": "headers",
	"cmd": "command", "envs": "env", "environment": "env", "uri": "url", // Goose and OpenCode
	"url": "url", "serverUrl": "url", "httpUrl": "url", "type": "transport", "transport": "transport",
	"enabled": "enabled", "disabled": "enabled",
}

const (
	byGrant = "what may be called is granted with `wasmgate grant`"
	byLogin = "write auth: oauth to the server in wasmgate.yaml, and run `wasmgate login`"
	noSense = "it concerns the host alone"

	ownConfine = "in wasmgate.yaml write confine, which `wasmgate confine learn` proposes"
)

// ignored are the keys that are known and not honoured, and why.
var ignored = map[string]string{
	"autoApprove": "never honoured: " + byGrant, "alwaysAllow": "never honoured: " + byGrant, "trust": "never honoured: " + byGrant,
	"allowedTools": "ignored: " + byGrant, "disabledTools": "ignored: " + byGrant, "enabledTools": "ignored: " + byGrant,
	"enabled_tools": "ignored: " + byGrant, "disabled_tools": "ignored: " + byGrant, "default_tools_approval_mode": "never honoured: " + byGrant,
	"startup_timeout_sec": "ignored: in wasmgate.yaml write start: 30s", "tool_timeout_sec": "ignored: in wasmgate.yaml write timeout: 30s", "required": "ignored: " + noSense,
	"includeTools": "ignored: " + byGrant, "excludeTools": "ignored: " + byGrant, "tools": "ignored: " + byGrant,
	"envFile":       "ignored: name the variables that it sets in env, as ${NAME}",
	"timeout":       "ignored: hosts disagree on its unit; in wasmgate.yaml write timeout: 30s",
	"oauth":         "ignored: " + byLogin,
	"auth":          "ignored: " + byLogin,
	"headersHelper": "ignored: write the headers, with ${NAME} for what is secret",
	"sandbox":       "ignored: " + ownConfine, "sandboxEnabled": "ignored: " + ownConfine,
	"name": "ignored: " + noSense, "description": "ignored: " + noSense, "icon": "ignored: " + noSense, "version": "ignored: " + noSense,
	"gallery": "ignored: " + noSense, "dev": "ignored: " + noSense, "id": "ignored: " + noSense,
}

// Explain adds readers of the keys that only clients have, which say what to write in a wasmgate.yaml.
func Explain(v decode.Value, readers map[string]decode.Reader) {
	for i, f := range v.Fields {
		own, known := keys[f.Key], ignored[f.Key]
		_, reason, _ := strings.Cut(known, ": ")
		switch {
		case readers[f.Key] != nil:
			continue
		case f.Key == "type":
			reason = "leave it out: command or url says how the server is reached; transport: sse is for older servers"
		case f.Key == "disabled":
			reason = "write enabled: false"
		case own != "":
			reason = "here it is called " + own
		case reason == "":
			continue
		}
		readers[f.Key] = func(decode.Value) { v.Field(i).At.Fail("unknown key; %s", reason) }
	}
}
