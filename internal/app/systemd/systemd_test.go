package systemd_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/app/systemd"
)

func TestNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := systemd.Notify(systemd.Ready); err != nil {
		t.Error("without a manager:", err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("there is no systemd")
	}
	dir, err := os.MkdirTemp("", "sd") // short enough for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	names := map[string]string{"path": filepath.Join(dir, "notify")}
	if runtime.GOOS == "linux" {
		names["abstract"] = "@wasmgate-test-" + strconv.Itoa(os.Getpid())
	}
	for kind, name := range names {
		at := name
		if at[0] == '@' {
			at = "\x00" + at[1:]
		}
		manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer manager.Close()
		t.Setenv("NOTIFY_SOCKET", name)
		for _, want := range []string{systemd.Ready, systemd.Status("3 calls"), systemd.Watchdog} {
			if err := systemd.Notify(want); err != nil {
				t.Fatal(kind, err)
			}
			b := make([]byte, 100)
			n, err := manager.Read(b)
			if got := string(b[:n]); err != nil || got != want {
				t.Errorf("%s: the manager has %q, %v", kind, got, err)
			}
		}
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "none"))
	if err := systemd.Notify(systemd.Ready); err == nil {
		t.Error("a manager that is not there was told")
	}
}

func TestWatchdogEvery(t *testing.T) {
	for _, tt := range []struct {
		usec, pid string
		want      time.Duration
	}{
		{"", "", 0}, {"x", "", 0}, {"-1", "", 0},
		{"30000000", "", 15 * time.Second}, {"2000000", strconv.Itoa(os.Getpid()), time.Second}, {"2000000", "1", 0},
	} {
		t.Setenv("WATCHDOG_USEC", tt.usec)
		t.Setenv("WATCHDOG_PID", tt.pid)
		if got := systemd.WatchdogEvery(); got != tt.want {
			t.Errorf("usec %q pid %q: %v, want %v", tt.usec, tt.pid, got, tt.want)
		}
	}
}
