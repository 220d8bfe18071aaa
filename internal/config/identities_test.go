package config_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
)

// Identities are one person's or house's: not what anybody can have.
func TestIdentities(t *testing.T) {
	for id, wrong := range map[string]string{
		"ann@home.example": "", "DE89370400440532013000": "", "/home/ann": "", "ann@gmail.com": "", "@corp.example": "", "@mail.corp.co.uk": "",
		"@gmail.com": "anyone can get", "@GMail.com": "anyone can get", "@github.io": "anyone can get", "@co.uk": "anyone can get",
		"@com": "is not a domain", "@*.corp.example": "is not a domain", "@": "neither an email address", " x": "neither an email address",
	} {
		path := filepath.Join(t.TempDir(), "wasmgate.yaml")
		write(t, path, "version: 1\nprincipals: {ann: {identities: [\""+id+"\"]}}\n")
		c, err := config.Load(path, config.Options{})
		switch {
		case wrong == "" && err == nil && slices.Equal(c.Principals[0].Identities, []string{id}):
		case wrong != "" && err != nil && strings.Contains(err.Error(), wrong):
		default:
			t.Errorf("%s: %v", id, err)
		}
	}
}
