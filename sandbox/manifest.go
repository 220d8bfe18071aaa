package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/internal/config/manifest"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

const (
	maxManifest = 1 << 20 // bytes; schemas of some hundred tools
	maxTools    = 256
	maxToolName = 128 // bytes; MCP 2025-11-25 recommends no longer names
)

// A Manifest states what a module offers. Its JSON is in the module's custom section `wasmgate`, or
// in a file next to the module.
type Manifest struct {
	Tools []Tool `json:"tools"`
	// Wants is what the module wishes to be granted. A wish grants nothing.
	Wants *Wants `json:"wants,omitempty"`
	// Limits are those that the module asks for: stricter ones than the runtime's.
	// Only the operator can set others.
	Limits *WantedLimits `json:"limits,omitempty"`
	// Isolation is what calls share; "" means [IsolationCall].
	Isolation Isolation `json:"isolation,omitempty"`
	// Snapshot is the state in which an instance begins; "" means SnapshotInit
	// for a reactor and SnapshotInst for others.
	Snapshot Snapshot `json:"snapshot,omitempty"`
	// Args are the arguments of a WASI program, after the name of its tool, or of a reactor
	// after that of its module: what an interpreter is to run, for example. One that is
	// {{NAME}} is the argument of the call with that name, and left out if the call has none.
	Args []string `json:"args,omitempty"`
	// Stdin is what a WASI program reads in place of its request: {{NAME}}, the argument
	// of that name.
	Stdin string `json:"stdin,omitempty"`
	// Stdout is what a WASI program writes: "json", one JSON value, or "text"; "" means json.
	Stdout string `json:"stdout,omitempty"`
	// Imports says what becomes of imported functions that do not exist here. Stub names those that
	// the module does without, by MODULE.NAME, or the beginning of that and *. A function of WASI
	// returns that it is not supported; a call of another one traps.
	Imports struct {
		Stub []string `json:"stub,omitempty"`
	} `json:"imports,omitzero"`
	// Warm is the sample call that SnapshotWarm makes before any other. It must
	// hold nothing that one caller may know and another may not.
	Warm *Sample `json:"warm,omitempty"`
}

// Wants are the capabilities that a module wishes to have, in the form in which
// the operator's configuration grants them.
type Wants struct {
	HTTP    []WantedHTTP `json:"http,omitempty"`
	Dirs    []WantedDir  `json:"dirs,omitempty"`
	Secrets []string     `json:"secrets,omitempty"`
	KV      bool         `json:"kv,omitempty"`
}

// A WantedHTTP is an origin to which a module wishes to send requests.
type WantedHTTP struct {
	Origin  string   `json:"origin"`
	Methods []string `json:"methods,omitempty"`
	Path    string   `json:"path,omitempty"`
}

// A WantedDir is a directory that a module wishes to see. An empty Path leaves
// it to the operator which.
type WantedDir struct {
	Path  string `json:"path,omitempty"`
	Write bool   `json:"write,omitempty"`
}

// WantedLimits are the limits that a module asks for; see [Limits].
type WantedLimits struct {
	Timeout string `json:"timeout,omitempty"` // as time.ParseDuration reads it
	Fuel    uint64 `json:"fuel,omitempty"`
	Memory  string `json:"memory,omitempty"` // such as 64MiB
}

// A Sample is a call that a module can be warmed up with.
type Sample struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// Isolation is what the calls of a module share.
type Isolation string

const (
	// IsolationCall gives each call the state of the snapshot. Instances are used
	// again, after memory and globals were put back.
	IsolationCall Isolation = "call"
	// IsolationInstance gives each call an instance that no other call had.
	IsolationInstance Isolation = "instance"
	// IsolationSession gives each session an instance of its own, whose state its
	// calls share. They run one at a time. The state is dropped when the session ends,
	// when it was not used for 10 minutes, and if others need the room: a module has 64
	// at most, and all together have 1 GiB. A manifest that has it means IsolationCall.
	IsolationSession Isolation = "session"
)

// Snapshot is the state of a module in which its instances begin.
type Snapshot string

const (
	// SnapshotInst is that after instantiation: no code has run.
	SnapshotInst Snapshot = "inst"
	// SnapshotInit is that after _initialize. The module runs _initialize once for all calls: seeds
	// that it draws there are the same in each.
	SnapshotInit Snapshot = "init"
	// SnapshotWarm is that after a sample call.
	SnapshotWarm Snapshot = "warm"
	// SnapshotInput is that in which a command first reads its input. It cannot be copied: an
	// instance that was started before goes back to it after each call, or else another is started.
	// Values that it drew before are the same in each of its calls.
	SnapshotInput Snapshot = "input"
)

// A Tool is the definition of one function of a module, with the members that
// MCP's tools/list gives it. All of it is the module's own claim.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`            // a JSON object
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"` // a JSON object, or absent
	Annotations  json.RawMessage `json:"annotations,omitempty"`  // a JSON object, or absent
}

// ParseManifest reads a manifest in JSON, or in YAML as `wasmgate sandbox new` writes it. It
// refuses unknown members: a wish that this version does not know must not be taken for granted.
func ParseManifest(b []byte) (Manifest, error) {
	if !json.Valid(b) {
		file, err := manifest.Parse("manifest", b)
		if err != nil {
			return Manifest{}, err
		}
		b = file.JSON
	}
	return parseManifest(b)
}

// parseManifest reads one from JSON.
func parseManifest(b []byte) (Manifest, error) {
	var m Manifest
	if len(b) > maxManifest {
		return m, fmt.Errorf("sandbox: the manifest has %d bytes, more than %d", len(b), maxManifest)
	}
	if !utf8.Valid(b) {
		return m, errors.New("sandbox: the manifest is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("sandbox: read the manifest: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Manifest{}, errors.New("sandbox: the manifest has more than one JSON value")
	}
	if err := m.check(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

func (m Manifest) check() error {
	if len(m.Tools) == 0 || len(m.Tools) > maxTools {
		return fmt.Errorf("sandbox: the manifest has %d tools; it must have 1 to %d", len(m.Tools), maxTools)
	}
	if err := m.checkState(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, t := range m.Tools {
		if t.Name == "" || len(t.Name) > maxToolName || strings.ContainsFunc(t.Name, func(c rune) bool { return c <= ' ' || c == 0x7f || c == utf8.RuneError }) {
			return fmt.Errorf("sandbox: the manifest has a tool named %.200q: a name has 1 to %d bytes without spaces and control characters", t.Name, maxToolName)
		}
		if seen[t.Name] {
			return fmt.Errorf("sandbox: the manifest names tool %q twice", t.Name)
		}
		seen[t.Name] = true
		if !isObject(t.InputSchema) {
			return fmt.Errorf("sandbox: tool %q: inputSchema is not a JSON object", t.Name)
		}
		if t.OutputSchema != nil && !isObject(t.OutputSchema) {
			return fmt.Errorf("sandbox: tool %q: outputSchema is not a JSON object", t.Name)
		}
		if t.Annotations != nil && !isObject(t.Annotations) {
			return fmt.Errorf("sandbox: tool %q: annotations is not a JSON object", t.Name)
		}
	}
	return nil
}

func (m Manifest) checkState() error {
	switch m.Isolation {
	case "", IsolationCall, IsolationInstance, IsolationSession:
	default:
		return fmt.Errorf("sandbox: the manifest has isolation %.40q; it must be call, instance or session", m.Isolation)
	}
	switch m.Snapshot {
	case "", SnapshotInst, SnapshotInit, SnapshotWarm, SnapshotInput:
	default:
		return fmt.Errorf("sandbox: the manifest has snapshot %.40q; it must be inst, init, warm or input", m.Snapshot)
	}
	if slices.ContainsFunc(m.Args, func(a string) bool { return strings.ContainsRune(a, 0) }) {
		return errors.New("sandbox: the manifest has an argument with a NUL character")
	}
	if m.Stdin != "" && !isPlaceholder(m.Stdin) {
		return fmt.Errorf("sandbox: the manifest has stdin %.40q; it must be {{NAME}}, the name of an argument", m.Stdin)
	}
	if m.Stdout != "" && m.Stdout != stdoutJSON && m.Stdout != stdoutText {
		return fmt.Errorf("sandbox: the manifest has stdout %.40q; it must be json or text", m.Stdout)
	}
	if m.Stdout == stdoutText && slices.ContainsFunc(m.Tools, func(t Tool) bool { return t.OutputSchema != nil }) {
		return errors.New("sandbox: the manifest has an outputSchema, which is of JSON, and stdout: text")
	}
	if m.Snapshot == SnapshotInput && slices.ContainsFunc(m.Args, isPlaceholder) {
		return errors.New("sandbox: the manifest has arguments of the call in args, which a program with snapshot: input has before there is a call")
	}
	if (m.Snapshot == SnapshotWarm) != (m.Warm != nil) {
		return errors.New("sandbox: the manifest needs both snapshot: warm and the sample call warm, or neither")
	}
	if m.Warm != nil && !slices.ContainsFunc(m.Tools, func(t Tool) bool { return t.Name == m.Warm.Tool }) {
		return fmt.Errorf("sandbox: the manifest's sample call warm is of the tool %.100q, which the manifest does not have", m.Warm.Tool)
	}
	_, err := m.limits()
	return err
}

// limits are those that the manifest asks for.
func (m Manifest) limits() (l Limits, err error) {
	if m.Limits == nil {
		return l, nil
	}
	l.Fuel = m.Limits.Fuel
	if m.Limits.Memory != "" {
		if l.Memory, err = parseSize(m.Limits.Memory); err != nil {
			return l, err
		}
	}
	if m.Limits.Timeout != "" {
		if l.Timeout, err = time.ParseDuration(m.Limits.Timeout); err != nil {
			return l, fmt.Errorf("sandbox: the manifest's timeout %.40q is not a duration such as 2s", m.Limits.Timeout)
		}
	}
	return l, l.check()
}

// parseSize reads a number of bytes with a binary unit.
func parseSize(s string) (int64, error) {
	for unit, bytes := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		number, ok := strings.CutSuffix(s, unit)
		if n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32); ok && err == nil && n > 0 {
			return n * bytes, nil
		}
	}
	return 0, fmt.Errorf("sandbox: the manifest's memory %.40q is not a size such as 64MiB", s)
}

func isObject(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{")) && json.Valid(b)
}

// What the standard output of a WASI program holds.
const (
	stdoutJSON = "json"
	stdoutText = "text"
)

// isPlaceholder reports whether a word of a manifest stands for an argument of the call: as
// a whole, so that code in which there are braces is left alone.
func isPlaceholder(word string) bool {
	name, ok := strings.CutPrefix(word, "{{")
	name, end := strings.CutSuffix(name, "}}")
	return ok && end && name != "" && !strings.ContainsAny(name, "{}")
}

// stubs reports whether a module does without a function that it imports.
func (m Manifest) stubs(i rewrite.Import) bool {
	name := i.Module + "." + i.Name
	return i.Function && slices.ContainsFunc(m.Imports.Stub, func(pattern string) bool {
		beginning, any := strings.CutSuffix(pattern, "*")
		return pattern == name || any && strings.HasPrefix(name, beginning)
	})
}
