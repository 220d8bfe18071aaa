package reference

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/variables"
	"github.com/wasmgate/wasmgate/internal/reference/keyring"
	"github.com/wasmgate/wasmgate/internal/vault"
)

// A Source is a place where secrets are kept. Name is what a reference has after the scheme. The error names no
// secret.
type Source interface {
	Read(ctx context.Context, name string) (string, error)
}

// Sources are the places by the schemes of their references.
type Sources map[string]Source

// New returns all sources. The vault is that of the gateway.
func New(v *vault.Vault) Sources {
	return Sources{"file": file{}, "exec": command{}, "keyring": ring{}, "op": onePassword{}, "vault": sealed{v}}
}

// Resolve returns a text of a configuration with the secrets that it refers to.
func (s Sources) Resolve(ctx context.Context, text string) (string, error) {
	return variables.Resolve(text, func(reference string) (string, error) {
		scheme, name, _ := strings.Cut(reference, ":")
		from, ok := s[scheme]
		if !ok {
			return "", fmt.Errorf("${%s:...}: there is no such source of secrets", scheme)
		}
		secret, err := from.Read(ctx, name)
		switch {
		case err != nil:
			return "", fmt.Errorf("${%s:...}: %w", scheme, err)
		case secret == "":
			return "", fmt.Errorf("${%s:...}: the secret is empty", scheme)
		case strings.ContainsRune(secret, 0):
			return "", fmt.Errorf("${%s:...}: the secret holds a NUL character", scheme)
		}
		return secret, nil
	})
}

const (
	// maxSecret bounds a secret, in bytes.
	maxSecret = 64 << 10
	// commandTime is how long a command may take. Some ask their user.
	commandTime = time.Minute
)

// whole returns a secret without the line break that editors and commands add.
func whole(secret []byte) (string, error) {
	if len(secret) > maxSecret {
		return "", fmt.Errorf("the secret has more than %d bytes", maxSecret)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(secret), "\n"), "\r"), nil
}

// file reads ${file:PATH}.
type file struct{}

// Path returns the file that ${file:NAME} names.
func Path(name string) (string, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, err := os.UserHomeDir()
		return filepath.Join(home, rest), err
	}
	if !filepath.IsAbs(name) {
		return "", fmt.Errorf("%q is neither an absolute path nor begins with ~/", name)
	}
	return name, nil
}

func (file) Read(_ context.Context, name string) (string, error) {
	path, err := Path(name)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	secret, err := io.ReadAll(io.LimitReader(f, maxSecret+2))
	if err != nil {
		return "", err
	}
	return whole(secret)
}

// command reads ${exec:COMMAND WORD...}: what the command prints. No shell reads it.
type command struct{}

func (command) Read(ctx context.Context, line string) (string, error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return "", errors.New("it names no command")
	}
	return output(ctx, words[0], words[1:]...)
}

// onePassword reads ${op://VAULT/ITEM/FIELD} with 1Password's own command.
type onePassword struct{}

func (onePassword) Read(ctx context.Context, name string) (string, error) {
	return output(ctx, "op", "read", "--no-newline", "op:"+name)
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.WaitDelay = limited{&out}, 10*time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("%s: %w; run it by hand to see why", name, err)
	}
	return whole(out.Bytes())
}

// limited takes what a secret may have, and one byte more than fits.
type limited struct{ to *bytes.Buffer }

func (l limited) Write(b []byte) (int, error) {
	room := max(0, maxSecret+3-l.to.Len())
	l.to.Write(b[:min(room, len(b))])
	return len(b), nil
}

// ring reads ${keyring:SERVICE/ACCOUNT}.
type ring struct{}

func (ring) Read(_ context.Context, name string) (string, error) {
	service, account, ok := strings.Cut(name, "/")
	if !ok || service == "" || account == "" {
		return "", errors.New("write ${keyring:SERVICE/ACCOUNT}")
	}
	return keyring.Secret(service, account)
}

// sealed reads ${vault:NAME} from the gateway's own vault, and ${vault://PATH#FIELD} from HashiCorp Vault with its
// own command.
type sealed struct{ vault *vault.Vault }

func (s sealed) Read(ctx context.Context, name string) (string, error) {
	if path, ok := strings.CutPrefix(name, "//"); ok {
		path, field, ok := strings.Cut(path, "#")
		if !ok || field == "" || path == "" || strings.HasPrefix(path, "-") {
			return "", errors.New("write ${vault://PATH#FIELD}")
		}
		return output(ctx, "vault", "kv", "get", "-field="+field, path)
	}
	secret, err := s.vault.Get(Key(name))
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, name)
	}
	return whole(secret)
}

// Key is where the gateway's vault keeps a secret that is referred to as ${vault:NAME}.
func Key(name string) vault.Key { return vault.Key{Kind: "secret", Server: name} }
