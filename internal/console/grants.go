package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/policies"
	"github.com/wasmgate/wasmgate/internal/audit/index"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/policy"
)

// grantHandlers serve the file of grants, and change it.
type grantHandlers struct {
	*frame
	access    *access
	log       *auditLog
	policies  *policies.Policies
	inventory *inventory.Inventory
}

// getGrants also says by ETag which state of the file it is.
func (h *grantHandlers) getGrants(w http.ResponseWriter, r *http.Request) error {
	all, seen, err := policydata.SeeGrants(r.Context(), h.policies.Grants())
	if err != nil {
		return err
	}
	list := make([]policy.Grant, 0, len(all)) // whose names in JSON are those of the file
	for _, g := range all {
		list = append(list, policy.Grant(g))
	}
	w.Header().Set("ETag", strconv.Quote(seen))
	return answer(w, list, nil)
}

// putGrants puts the whole list in the place of the one that If-Match names (RFC 9110, 13.1.1).
func (h *grantHandlers) putGrants(w http.ResponseWriter, r *http.Request) error {
	seen, err := strconv.Unquote(r.Header.Get("If-Match"))
	if err != nil {
		return &misused{"If-Match has to be the ETag of the grants as they were seen"}
	}
	var list []policy.Grant
	if err := read(r, &list); err != nil {
		return err
	}
	next := make([]policydata.Grant, 0, len(list))
	for _, g := range list {
		next = append(next, policydata.Grant(g))
	}
	if err := h.setGrants(r.Context(), seen, next); err != nil {
		return err
	}
	return h.getGrants(w, r)
}

// setGrants puts grants in place. Each that comes or goes is decided on, and recorded, by itself.
func (h *grantHandlers) setGrants(ctx context.Context, seen string, next []policydata.Grant) error {
	now, is, err := policydata.SeeGrants(ctx, h.policies.Grants())
	if err != nil {
		return err
	}
	if is != seen {
		return policydata.ErrGrantsChanged
	}
	for _, g := range next {
		if len(g.To) == 0 || g.Empty() {
			return &misused{"a grant names who, and what"}
		}
	}
	for _, change := range []struct {
		op       string
		of, less []policydata.Grant
	}{{"grants.grant", next, now}, {"grants.revoke", now, next}} {
		for _, g := range change.of {
			if slices.ContainsFunc(change.less, g.Equal) {
				continue
			}
			if err := h.access.may(ctx, "admin/grant", change.op, g.String(), true); err != nil {
				return err
			}
		}
	}
	return h.policies.SetGrants(ctx, seen, next)
}

func (h *grantHandlers) grantsPage(w http.ResponseWriter, r *http.Request) error {
	all, seen, err := policydata.SeeGrants(r.Context(), h.policies.Grants())
	if err != nil {
		return err
	}
	used := make(map[use]int)
	p, err := h.log.index.Each(r.Context(), index.Query{Event: gate.Done, Code: codes.OK, Since: time.Now().AddDate(0, 0, -7)}, func(r index.Row) bool {
		used[use{gate.Action(r.Action), r.Server, r.Tool, r.Tenant, r.Principal, r.Roles}]++
		return true
	})
	if err != nil {
		return err
	}
	var kinds []string
	for _, k := range grantKinds {
		kinds = append(kinds, k.name)
	}
	rows := grantRows(all, used)
	return h.show(w, r, "grants", "Grants", map[string]any{"Rows": rows, "Matrix": matrixOf(all, rows, used), "File": h.status().Grants, "Seen": seen, "Kinds": kinds, "Names": h.grantable(), "Indexed": p})
}

// grantable are the names of servers and tools that there are.
func (h *grantHandlers) grantable() (names []string) {
	for _, s := range h.status().Servers {
		names = append(names, s.Server)
	}
	for _, t := range h.inventory.KnownTools() {
		names = append(names, t.Name.String())
	}
	slices.Sort(names)
	return names
}

// grantPage grants what a form names, or revokes a row of the page.
func (h *grantHandlers) grantPage(w http.ResponseWriter, r *http.Request) error {
	at := slices.IndexFunc(grantKinds, func(k grantKind) bool { return k.name == r.PostFormValue("kind") })
	pattern := strings.TrimSpace(r.PostFormValue("pattern"))
	if at < 0 || pattern == "" {
		return &misused{"the form names nothing that can be granted"}
	}
	kind := grantKinds[at]
	all, _, err := policydata.SeeGrants(r.Context(), h.policies.Grants()) // if it differs from what was seen, nothing is done
	if err != nil {
		return err
	}
	what := "granted"
	if entry := r.PostFormValue("entry"); entry != "" {
		i, err := strconv.Atoi(entry)
		if err != nil || i < 0 || i >= len(all) {
			return policydata.ErrGrantsChanged
		}
		what = "revoked"
		all = slices.Clone(all)
		of := kind.patterns(&all[i])
		*of = slices.DeleteFunc(slices.Clone(*of), func(p string) bool { return p == pattern })
		if kind.name == "tools" {
			all[i].Always = slices.DeleteFunc(slices.Clone(all[i].Always), func(p string) bool { return p == pattern })
		}
		if all[i].Empty() {
			all = slices.Delete(all, i, i+1)
		}
	} else {
		to := strings.TrimSpace(r.PostFormValue("to"))
		if to == "" {
			return &misused{"the form does not say to whom"}
		}
		g := policydata.Grant{To: []string{to}}
		*kind.patterns(&g) = []string{pattern}
		all = append(slices.Clone(all), g)
	}
	if err := h.setGrants(r.Context(), r.PostFormValue("seen"), all); err != nil {
		return err
	}
	return h.done(w, r, "/ui/grants", fmt.Sprintf("%s: %s %s", what, kind.name, pattern))
}
