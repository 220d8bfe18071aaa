package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestCompose reads the compose files: each gateway is confined, and wasmgate takes its configuration.
func TestCompose(t *testing.T) {
	wasmgate := program(t)
	for folder, gateways := range map[string]int{"deploy/docker": 1, "deploy/docker/several": 3} {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			var file struct {
				Services map[string]struct {
					Image       string
					Build       struct{ Context, Dockerfile string }
					ReadOnly    bool     `json:"read_only"`
					Tmpfs       []string `json:"tmpfs"`
					CapDrop     []string `json:"cap_drop"`
					SecurityOpt []string `json:"security_opt"`
					Environment map[string]string
					Volumes     []string
				}
				Volumes map[string]any
			}
			text, err := os.ReadFile(filepath.Join(root, folder, "compose.yaml"))
			if err == nil {
				err = yaml.Unmarshal(text, &file)
			}
			if err != nil {
				t.Fatal(err)
			}
			found, nodes := 0, map[string]bool{}
			for name, s := range file.Services {
				for _, v := range s.Volumes {
					from, _, _ := strings.Cut(v, ":")
					if _, named := file.Volumes[from]; !named && !strings.HasPrefix(from, "./") {
						t.Errorf("%s: there is no volume %s", name, from)
					}
				}
				if s.Image != "wasmgate" {
					continue
				}
				found++
				nodes[s.Environment["NODE"]] = true
				if _, err := os.Stat(filepath.Join(root, folder, s.Build.Context, s.Build.Dockerfile)); err != nil {
					t.Error(err)
				}
				if !s.ReadOnly || !slices.Equal(s.Tmpfs, []string{"/tmp"}) || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
					t.Errorf("%s is not confined: %+v", name, s)
				}
			}
			if found != gateways || len(nodes) != gateways {
				t.Errorf("%d gateways with %d names, want %d", found, len(nodes), gateways)
			}
			c := exec.CommandContext(t.Context(), wasmgate, "policy", "check", "--config", filepath.Join(root, folder, "wasmgate.yaml"))
			c.Env = append(os.Environ(), "HOME="+t.TempDir(), "PUBLIC_URL=https://gw.example.com", "STORE_SECRET="+strings.Repeat("x", 32), "NODE=gate-1")
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("wasmgate does not take the configuration: %v\n%s", err, out)
			}
		})
	}
}
