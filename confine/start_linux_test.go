package confine_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

func TestStartSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string, mode fs.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	plain := write("plain", "#!/bin/sh\n", 0o600)
	garbage := write("garbage", "\x00\x01\x02", 0o700)
	orphan := write("orphan", "#!/no/such/interpreter\n", 0o700)
	path := []string{"PATH=relative:" + dir}
	tests := map[string]struct {
		cmd  confine.Command
		want string
		is   error
	}{
		"no command":                  {confine.Command{}, `exec "": no command given`, nil},
		"a name no one knows":         {confine.Command{Path: "npx", Env: path}, `npx is not installed, or not in the PATH that its env sets: install it`, nil},
		"a name without PATH":         {confine.Command{Path: "npx"}, `npx cannot be found, because its environment has no PATH`, nil},
		"the last PATH counts":        {confine.Command{Path: "npx", Env: []string{"PATH=" + dir, "PATH=/no"}}, `npx is not installed`, nil},
		"a name in the directory":     {confine.Command{Path: "garbage", Dir: dir, Env: []string{"PATH=.:"}}, `garbage is not installed`, nil},
		"arguments in the command":    {confine.Command{Path: "npx -y pkg", Env: path}, `there is no program npx -y pkg: write its arguments under args, one item each`, nil},
		"arguments, one with a slash": {confine.Command{Path: "npx -y @scope/pkg", Dir: dir}, `@scope/pkg: write its arguments under args, one item each`, nil},
		"a missing file":              {confine.Command{Path: "/no/such/file"}, `/no/such/file`, fs.ErrNotExist},
		"a missing relative file":     {confine.Command{Path: "./tool", Dir: dir}, dir + "/tool", fs.ErrNotExist},
		"a directory":                 {confine.Command{Path: dir}, dir + " is a directory", nil},
		"a file not executable":       {confine.Command{Path: plain}, "is not executable", fs.ErrPermission},
		"a name not executable":       {confine.Command{Path: "plain", Env: path}, "is not executable", fs.ErrPermission},
		"a file of no format":         {confine.Command{Path: garbage}, "exec format error", syscall.ENOEXEC},
		"a missing interpreter":       {confine.Command{Path: orphan}, "interpreter", fs.ErrNotExist},
		"a missing directory":         {confine.Command{Path: "/bin/true", Dir: "/no/such"}, "working directory", fs.ErrNotExist},
		"a file as directory":         {confine.Command{Path: "/bin/true", Dir: plain}, "is not a directory", nil},
		"a NUL in an argument":        {confine.Command{Path: "/bin/true", Args: []string{"a", "\x00"}}, "argument 1 contains a NUL byte", nil},
		"a NUL in the environment": {confine.Command{Path: "/bin/true", Env: []string{"TOKEN=a\x00"}},
			"environment entry 0 contains a NUL byte", nil},
		"arguments without measure": {confine.Command{Path: "/bin/true", Args: []string{strings.Repeat("x", 1<<20)}}, "argument list too long", syscall.E2BIG},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if name == "a missing relative file" && strings.Contains(dir, " ") {
				tt.is = nil // it may be a command with its arguments
			}
			c, err := confine.Start(t.Context(), tt.cmd)
			if err == nil {
				c.Close(0)
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %q, want %q (%v)", err, tt.want, tt.is)
			}
			if left := children(); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
		})
	}
}

func TestTheChildGetsWhatItIsGivenAndNothingElse(t *testing.T) {
	leak, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	if _, err := unix.FcntlInt(leak.Fd(), unix.F_SETFD, 0); err != nil { // as if inherited
		t.Fatal(err)
	}
	t.Run("arguments, environment, directory", func(t *testing.T) {
		t.Setenv("GATEWAY_SECRET", "x")
		cmd := command("describe", "", "a b", "\"'$(x)")
		cmd.Env = []string{"PATH=/bin", "A=1", "B=", "C=\xff\n", "A=2", "GOMAXPROCS=1"}
		cmd.Dir = t.TempDir()
		var got description
		decode(t, cmd, &got)
		want := description{append([]string{cmd.Path}, cmd.Args...), quoted([]string{"PATH=/bin", "B=", "C=\xff\n", "A=2", "GOMAXPROCS=1"}), cmd.Dir}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("no environment", func(t *testing.T) {
		cmd := command("describe")
		cmd.Env = nil
		var got description
		decode(t, cmd, &got)
		if len(got.Env) > 0 {
			t.Errorf("environment = %v", got.Env)
		}
	})
	t.Run("three descriptors", func(t *testing.T) {
		cmd := command("")
		cmd.Path, cmd.Args = "sh", []string{"-c", "exec ls /proc/self/fd"} // ls holds 3, the directory
		_, out := begin(t, cmd)
		if got, _ := io.ReadAll(out); string(got) != "0\n1\n2\n3\n" {
			t.Errorf("descriptors = %q", got)
		}
	})
	t.Run("no ignored signal", func(t *testing.T) {
		cmd := command("")
		cmd.Path, cmd.Args = "grep", []string{"SigIgn", "/proc/self/status"}
		_, out := begin(t, cmd)
		own, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		// What ran the tests may ignore signals itself, as nohup does.
		if got := ignored(t, line(t, out)); got&^ignored(t, string(own)) != 0 {
			t.Errorf("child ignores %x", got)
		}
	})
	t.Run("its own stderr", func(t *testing.T) {
		cmd := command("exit", "0")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		c, _ := begin(t, cmd)
		c.Wait()
		if got := stderr.String(); !strings.HasPrefix(got, "on stderr\n") { // a warning about coverage may follow
			t.Errorf("stderr = %q", got)
		}
	})
}

func TestStartHeedsItsContext(t *testing.T) {
	unraced.Long(t)
	m := t.Name() + strconv.Itoa(os.Getpid())
	t.Setenv(mark, m)
	canceled := 0
	for i := range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond/2)
		c, err := confine.Start(ctx, command("daemon", "echo"))
		switch {
		case err == nil:
			err = c.Close(0)
		case errors.Is(err, context.DeadlineExceeded):
			canceled, err = canceled+1, nil
		}
		if err != nil {
			t.Error(err)
		}
		cancel()
	}
	if canceled == 0 {
		t.Error("no start was cancelled")
	}
	if left := append(marked(m), children()...); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestStartGivesUpAProgramThatDoesNotGetToMain(t *testing.T) {
	unraced.Long(t)
	cmd := confine.Command{Path: filepath.Join(t.TempDir(), "unready")}
	if err := os.Symlink("/bin/true", cmd.Path); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	if _, err := confine.Start(ctx, cmd); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start = %v", err)
	}
	if left := children(); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestAStrangerCannotRunASupervisor(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var stderr bytes.Buffer
	cmd := exec.Cmd{Path: "/proc/self/exe", Args: []string{"wasmgate-child"}, Stderr: &stderr, ExtraFiles: []*os.File{null, null}}
	err = cmd.Run()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(stderr.String(), "only a gateway starts this program") {
		t.Errorf("ended with %v and %q", err, &stderr)
	}
}

// ignored returns the set of ignored signals that a text of proc(5) holds.
func ignored(t *testing.T, status string) uint64 {
	t.Helper()
	_, rest, _ := strings.Cut(status, "SigIgn:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("no SigIgn in %q", status)
	}
	set, err := strconv.ParseUint(fields[0], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return set
}
