package console

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/policies"
	"github.com/wasmgate/wasmgate/internal/replay"
	"github.com/wasmgate/wasmgate/policy"
)

// comparisonHandlers compare a changed policy with the one in use, on recorded calls.
type comparisonHandlers struct {
	*frame
	access    *access
	policy    *currentPolicy
	policies  *policies.Policies
	inventory *inventory.Inventory
	path      string // of the audit log
	documents documents
	comparing comparing
}

// Limits of a comparison. Only one is made at a time.
const (
	compareTime  = time.Minute
	compareCalls = 20_000   // that are read
	compareBytes = 64 << 20 // of their arguments and results, from the log or kept apart from it
	compareSince = 7 * 24 * time.Hour
)

var errComparing = errors.New("another comparison is running: wait for it")

// A change is what another policy has in the place of the one in use.
type change struct {
	Files map[string]string `json:"files"` // by the name that the policy has them by; others are new
	Packs []string          `json:"packs"` // absent: those of the configuration
	// Grants and Labels are texts of such files; absent: those in use.
	Grants *string `json:"grants"`
	Labels *string `json:"labels"`
	Since  string  `json:"since"` // how far back; a week without
}

// of names what a change puts in place.
func (to change) of() []string {
	all := slices.Sorted(maps.Keys(to.Files))
	if to.Packs != nil {
		all = append(all, "packs: "+strings.Join(to.Packs, ", "))
	}
	if to.Grants != nil {
		all = append(all, "grants")
	}
	if to.Labels != nil {
		all = append(all, "labels")
	}
	return all
}

// A compared is how far the last comparison is, and what it has found.
type compared struct {
	Running bool      `json:"running"`
	Began   time.Time `json:"began"`
	Since   time.Time `json:"since"`
	By      string    `json:"by"`
	Of      []string  `json:"of"`                // what was changed
	All     int       `json:"all"`               // calls that it is about; 0 while they are read
	Problem string    `json:"problem,omitempty"` // for which it ended early
	replay.Comparison
}

type comparing struct {
	sync.Mutex
	last *compared
}

// begin takes the one place there is.
func (c *comparing) begin(one *compared) error {
	c.Lock()
	defer c.Unlock()
	if c.last != nil && c.last.Running {
		return errComparing
	}
	c.last = one
	return nil
}

// told changes what is known of the last comparison.
func (c *comparing) told(change func(*compared)) {
	c.Lock()
	defer c.Unlock()
	change(c.last)
}

// seen returns the last comparison, nil if there is none.
func (c *comparing) seen() *compared {
	c.Lock()
	defer c.Unlock()
	if c.last == nil {
		return nil
	}
	one := *c.last
	one.Differences, one.Missing = slices.Clone(one.Differences), slices.Clone(one.Missing)
	return &one
}

// changed returns the policy in use with a change in it.
func (h *comparisonHandlers) changed(ctx context.Context, to change) (*policy.Engine, error) {
	p, err := h.policy.read(ctx)
	if err != nil {
		return nil, err
	}
	files, err := rego(p.Files)
	if err != nil {
		return nil, err
	}
	for name, text := range to.Files {
		if !fs.ValidPath(name) || !strings.HasSuffix(name, ".rego") {
			return nil, &misused{"file " + name + " is not a name of a .rego file"}
		}
		files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o600}
	}
	for _, name := range to.Packs {
		if !slices.Contains(policy.Packs(), name) {
			return nil, &misused{"there is no policy pack " + name}
		}
	}
	if to.Packs != nil {
		p.Options.Packs = to.Packs
	}
	if to.Grants != nil {
		if err := replay.PutGrants(&p, "grants", []byte(*to.Grants)); err != nil {
			return nil, err
		}
	}
	if to.Labels != nil {
		if err := replay.PutLabels(&p, "labels", []byte(*to.Labels)); err != nil {
			return nil, err
		}
	}
	p.Options.Timeout = replay.Timeout
	return policy.Load(ctx, files, p.Options)
}

// rego returns the files of a policy.
func rego(from fs.FS) (fstest.MapFS, error) {
	files := make(fstest.MapFS)
	if from == nil {
		return files, nil
	}
	return files, fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, name)
		files[name] = &fstest.MapFile{Data: text, Mode: 0o600}
		return err
	})
}

// compare begins to evaluate a changed policy on the calls of a time. It goes on when the request has
// been answered. Sealed arguments and results are read if the policy lets the caller, which is
// recorded.
func (h *comparisonHandlers) compare(ctx context.Context, to change) error {
	since, err := time.ParseDuration(cmp.Or(strings.TrimSpace(to.Since), compareSince.String()))
	if err != nil || since <= 0 {
		return &misused{"since is a duration such as 24h"}
	}
	engine, err := h.changed(ctx, to)
	if err != nil {
		return err
	}
	tools, err := h.inventory.Tools(ctx, "", true)
	if err != nil {
		return err
	}
	skills, err := h.inventory.Skills(ctx, "")
	if err != nil {
		return err
	}
	definitions, err := replay.DefinitionsOf(tools, skills)
	if err != nil {
		return err
	}
	now := time.Now()
	log := replay.Log{File: h.path, Since: now.Add(-since), Most: compareCalls, MostBytes: compareBytes, Definitions: func() map[replay.Key]*gate.Tool { return definitions }}
	if h.access.may(ctx, "admin/read", readArguments, "calls since "+log.Since.UTC().Format(time.RFC3339), true) == nil {
		log.Documents = func(wanted map[string]bool) (map[string][]byte, error) { return h.documents(wanted, compareBytes) }
	}
	if err := h.comparing.begin(&compared{Running: true, Began: now, Since: log.Since, By: by(ctx).ID, Of: append([]string{}, to.of()...)}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), compareTime)
	go func() {
		defer cancel()
		found, err := replay.Compare(ctx, engine, log, func(done replay.Comparison, all int) {
			done.Differences, done.Missing = slices.Clone(done.Differences), slices.Clone(done.Missing)
			h.comparing.told(func(one *compared) { one.Comparison, one.All = done, all })
		})
		h.comparing.told(func(one *compared) {
			one.Running, one.Comparison = false, found
			switch {
			case errors.Is(err, context.DeadlineExceeded):
				one.Problem = "it was ended after " + compareTime.String() + ": compare a shorter time"
			case err != nil:
				one.Problem = err.Error()
			}
		})
	}()
	return nil
}

func (h *comparisonHandlers) postComparison(w http.ResponseWriter, r *http.Request) error {
	var to change
	if err := read(r, &to); err != nil {
		return err
	}
	if err := h.compare(r.Context(), to); err != nil {
		return err
	}
	return h.getComparison(w, r)
}

func (h *comparisonHandlers) getComparison(w http.ResponseWriter, _ *http.Request) error {
	one := h.comparing.seen()
	if one == nil {
		return &missing{"comparison as yet"}
	}
	return answer(w, one, nil)
}

// comparisonPage shows the files of the policy to change, and the last comparison. A browser asks again
// by itself while one is being made.
func (h *comparisonHandlers) comparisonPage(w http.ResponseWriter, r *http.Request) error {
	p, err := h.policy.read(r.Context())
	if err != nil {
		return err
	}
	files, err := rego(p.Files)
	if err != nil {
		return err
	}
	file := cmp.Or(r.FormValue("file"), "changed.rego")
	text := "package wasmgate\n\ndeny contains \"...\" if {\n\tinput.action == \"tools/call\"\n\tinput.tool.name == \"...\"\n}\n"
	if one := files[file]; one != nil {
		text = string(one.Data)
	}
	packs := make(map[string]bool)
	for _, name := range policy.Packs() {
		packs[name] = slices.Contains(p.Options.Packs, name)
	}
	grants, err := textOf(h.policies.Files().Grants)
	if err != nil {
		return err
	}
	labels, err := textOf(h.policies.Files().Labels)
	if err != nil {
		return err
	}
	last := h.comparing.seen()
	if last != nil && last.Running {
		w.Header().Set("Refresh", "2")
	}
	return h.show(w, r, "comparison", "Compare another policy", map[string]any{"Files": slices.Sorted(maps.Keys(files)), "File": file, "Text": text, "Packs": packs, "Grants": grants, "Labels": labels, "Last": last})
}

// textOf returns what is in a file, "" if there is none.
func textOf(file string) (string, error) {
	text, err := os.ReadFile(file)
	if file == "" || errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

func (h *comparisonHandlers) comparePage(w http.ResponseWriter, r *http.Request) error {
	text := func(name string) string { return strings.ReplaceAll(r.PostFormValue(name), "\r\n", "\n") } // as browsers send lines
	to := change{Since: r.PostFormValue("since"), Packs: append([]string{}, r.PostForm["pack"]...)}
	if rules := text("text"); strings.TrimSpace(rules) != "" {
		to.Files = map[string]string{r.PostFormValue("file"): rules}
	}
	files := h.policies.Files()
	for _, one := range []struct {
		name, file string
		to         **string
	}{{"grants", files.Grants, &to.Grants}, {"labels", files.Labels, &to.Labels}} {
		now, err := textOf(one.file)
		if err != nil {
			return err
		}
		if next := text(one.name); r.PostForm.Has(one.name) && strings.TrimSpace(next) != strings.TrimSpace(strings.ReplaceAll(now, "\r\n", "\n")) {
			*one.to = &next
		}
	}
	if err := h.compare(r.Context(), to); err != nil {
		return err
	}
	return h.done(w, r, "/ui/policy/comparison", "the comparison is running; this page shows it when it is done")
}
