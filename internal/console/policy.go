package console

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/policies"
	"github.com/wasmgate/wasmgate/internal/audit/index"
)

// policyHandlers serve what decides, and which rules have.
type policyHandlers struct {
	*frame
	log      *auditLog
	policies *policies.Policies
}

// policyFiles are where the policy comes from.
type policyFiles struct {
	Packs  []string `json:"packs"`
	Paths  []string `json:"paths"`
	Grants string   `json:"grants"`
}

func (h *policyHandlers) policyFiles() policyFiles {
	p := h.policies.Files()
	return policyFiles{append([]string{}, p.Packs...), append([]string{}, p.Paths...), p.Grants}
}

// rules are what decides, and which rules have decided calls: each says its own reason.
type rules struct {
	policyFiles
	Revision string        `json:"revision"`
	Problems []string      `json:"problems,omitempty"`
	Bundles  any           `json:"bundles,omitempty"` // as the status has them
	Shadow   any           `json:"shadow,omitempty"`  // the same
	Calls    int           `json:"calls"`             // that coverage is of
	Coverage []coveredRule `json:"coverage"`
}

// coveredRule is a reason that decided calls, the most frequent first.
type coveredRule struct {
	Effect gate.Effect `json:"effect"`
	Reason string      `json:"reason"`
	Calls  int         `json:"calls"`
	Now    bool        `json:"now"`  // by the policy in use; else only by earlier ones
	Last   string      `json:"last"` // the newest of the calls
	At     time.Time   `json:"at"`   // when that was
}

// policy tells what decides. Coverage is of the newest calls that a request asks about.
func (h *policyHandlers) policy(r *http.Request) (p rules, of index.Progress, err error) {
	q, err := filter(r)
	if err != nil {
		return p, of, err
	}
	if r.FormValue("last") == "" {
		q.Last = mostCalls
	}
	s := h.status()
	p = rules{policyFiles: h.policyFiles(), Revision: s.Policy, Coverage: []coveredRule{}}
	if len(s.Bundles) > 0 {
		p.Bundles = s.Bundles
	}
	if s.Shadow != nil {
		p.Shadow = s.Shadow
	}
	for _, problem := range s.Problems {
		if strings.HasPrefix(problem, "policy") || strings.HasPrefix(problem, "shadow policy") {
			p.Problems = append(p.Problems, problem)
		}
	}
	calls, of, err := h.log.find(r.Context(), q)
	by := make(map[[2]string]*coveredRule)
	for _, e := range calls {
		if e.Effect == "" {
			continue // no policy was asked
		}
		p.Calls++
		for _, reason := range e.Reasons {
			k := [2]string{string(e.Effect), reason}
			if by[k] == nil {
				by[k] = &coveredRule{Effect: e.Effect, Reason: reason, Last: e.ID, At: e.Time}
			}
			by[k].Calls++
			by[k].Now = by[k].Now || e.PolicyRevision == s.Policy
		}
	}
	for _, one := range by {
		p.Coverage = append(p.Coverage, *one)
	}
	slices.SortFunc(p.Coverage, func(a, b coveredRule) int {
		return cmp.Or(b.Calls-a.Calls, strings.Compare(string(a.Effect), string(b.Effect)), strings.Compare(a.Reason, b.Reason))
	})
	return p, of, err
}

func (h *policyHandlers) getPolicy(w http.ResponseWriter, r *http.Request) error {
	p, _, err := h.policy(r)
	return answer(w, p, err)
}

func (h *policyHandlers) policyPage(w http.ResponseWriter, r *http.Request) error {
	p, of, err := h.policy(r)
	if err != nil {
		return err
	}
	return h.show(w, r, "policy", "Policy", map[string]any{"Policy": p, "Query": r.URL.Query(), "Indexed": of})
}
