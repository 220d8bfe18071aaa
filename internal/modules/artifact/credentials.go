package artifact

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// maxDockerConfig bounds the Docker configuration file, in bytes.
const maxDockerConfig = 1 << 20

// A keyring is the Docker configuration file. It is read when a registry asks for credentials, so a
// login has effect at once. Only credentials in the file itself are used: a helper is a program that
// the file names, and a gateway does not run programs that a file in the home directory names.
type keyring struct{ path string } // empty: no credentials

func newKeyring(path string) keyring {
	if path != "" {
		return keyring{path}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return keyring{}
	}
	return keyring{filepath.Join(home, ".docker", "config.json")}
}

// get returns the credentials for host, or none.
func (k keyring) get(ctx context.Context, host string) (auth.Credential, error) {
	if k.path == "" {
		return auth.EmptyCredential, nil
	}
	store, err := credentials.NewFileStore(k.path)
	if err != nil {
		return auth.EmptyCredential, err
	}
	return store.Get(ctx, credentials.ServerAddressFromHostname(host))
}

// hint says what to do when the registry, which is reached at host, has refused.
func (k keyring) hint(ctx context.Context, registry, host string) string {
	if k.path == "" {
		return fmt.Sprintf("there are no credentials for %s, as there is no home directory with a Docker configuration file", registry)
	}
	if c, err := k.get(ctx, host); err == nil && c != auth.EmptyCredential {
		return fmt.Sprintf("the credentials for %s in %s are not accepted", registry, k.path)
	}
	if helper := k.helper(host); helper != "" {
		return fmt.Sprintf("the credentials for %s are kept by the helper docker-credential-%.80s, which is not run: put them into %s itself, "+
			"as docker login does when the file has neither credsStore nor credHelpers", registry, helper, k.path)
	}
	return fmt.Sprintf("there are no credentials for %s in %s: run docker login %s if it needs some", registry, k.path, registry)
}

// helper returns the name of the helper for host, or nothing.
func (k keyring) helper(host string) string {
	b, err := readFile(k.path, maxDockerConfig)
	if err != nil {
		return ""
	}
	var file struct {
		Store   string            `json:"credsStore"`
		Helpers map[string]string `json:"credHelpers"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		return ""
	}
	return cmp.Or(file.Helpers[credentials.ServerAddressFromHostname(host)], file.Store)
}
