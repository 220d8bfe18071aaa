package keyring

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// A keyring keeps one key for each name, and returns an error if it cannot.
func TestKeyring(t *testing.T) {
	keyring.MockInit()
	keepsKeys(t)
	broken := errors.New("it is locked")
	keyring.MockInitWithError(broken)
	if key, err := Key("a"); len(key) > 0 || !errors.Is(err, broken) {
		t.Errorf("%q, %v", key, err)
	}
}

func keepsKeys(t *testing.T) {
	t.Helper()
	first, err := Key("/state/one")
	if err != nil || len(first) < 32 {
		t.Fatalf("%d bytes, %v", len(first), err)
	}
	if again, err := Key("/state/one"); err != nil || string(again) != string(first) {
		t.Errorf("asked again it is another: %v", err)
	}
	if other, err := Key("/state/two"); err != nil || string(other) == string(first) {
		t.Errorf("another name has the same: %v", err)
	}
}

// TestKeyringForReal: GNOME's, on a bus of its own. The test runs itself once more on that bus.
func TestKeyringForReal(t *testing.T) {
	const inside = "WASMGATE_TEST_KEYRING"
	if os.Getenv(inside) != "" {
		keepsKeys(t)
		return
	}
	toolchain.Need(t, "dbus-run-session", "dbus-send", "gnome-keyring-daemon")
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "dbus-run-session", "--", "sh", "-c",
		`printf secret | gnome-keyring-daemon --unlock --foreground --components=secrets & daemon=$!
		for i in $(seq 100); do # or the bus would start another one, which is locked
			dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner string:org.freedesktop.secrets | grep -q true && break
			sleep 0.1
		done
		"$0" -test.run '^TestKeyringForReal$' -test.v; status=$?; kill $daemon; wait; exit $status`, os.Args[0])
	cmd.Env = append(os.Environ(), inside+"=1", "HOME="+home, "XDG_DATA_HOME="+home, "XDG_RUNTIME_DIR="+home)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestKeyringForReal") {
		t.Errorf("%v\n%s", err, out)
	}
	kept, err := filepath.Glob(filepath.Join(home, "keyrings", "*.keyring"))
	if err != nil || len(kept) == 0 {
		t.Errorf("the keyring has kept nothing: %v", err)
	}
}
