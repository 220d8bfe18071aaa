package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/lock"
)

// npmTime is how long npm may take to say what the newest version of a package is.
const npmTime = 20 * time.Second

// PinVersions replaces the packages that npx would run in their newest versions by those versions, and says so. One whose
// version npm does not know stays as it is.
func PinVersions(ctx context.Context, servers []config.Server) (notes []string) {
	var wg sync.WaitGroup
	said := make([]string, len(servers))
	for i := range servers {
		s := &servers[i]
		specs := lock.Unpinned(s.Command, s.Args)
		if len(specs) == 0 || !s.Enabled {
			continue
		}
		wg.Go(func() {
			args, pinned := slices.Clone(s.Args), []string{}
			for _, spec := range specs {
				exact := newest(ctx, spec)
				at := slices.Index(args, spec)
				if exact == "" || at < 0 {
					continue
				}
				args[at] = exact
				pinned = append(pinned, exact)
			}
			if len(pinned) > 0 {
				s.Args, said[i] = args, fmt.Sprintf("%s: pinned to %s; to update, change the version in the configuration", s.ID, strings.Join(pinned, ", "))
			}
		})
	}
	wg.Wait()
	return slices.DeleteFunc(said, func(s string) bool { return s == "" })
}

// newest returns a package of npm with the version that stands for it today, or "".
func newest(ctx context.Context, spec string) string {
	ctx, cancel := context.WithTimeout(ctx, npmTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, "npm", "view", "--json", "--fetch-retries=0", "--", spec, "name", "version").Output()
	if err != nil {
		return ""
	}
	type version struct{ Name, Version string }
	var one version
	var several []version // that a range has, the newest last
	if json.Unmarshal(out, &one) != nil {
		if json.Unmarshal(out, &several) != nil || len(several) == 0 {
			return ""
		}
		one = several[len(several)-1]
	}
	exact := one.Name + "@" + one.Version
	if len(lock.Unpinned("npx", []string{exact})) > 0 {
		return ""
	}
	return exact
}

// sameArgs reports whether the arguments that a client has are a server's own, whose packages may be pinned to versions.
func sameArgs(client, own []string) bool {
	return slices.EqualFunc(client, own, func(a, b string) bool {
		name := a
		if i := strings.LastIndex(a, "@"); i > 0 {
			name = a[:i]
		}
		return a == b || len(lock.Unpinned("npx", []string{a})) > 0 && strings.HasPrefix(b, name+"@")
	})
}
