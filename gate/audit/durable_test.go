package audit_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// opened returns the opened records of a log.
func opened(t *testing.T, path string) []audit.Entry {
	t.Helper()
	var es []audit.Entry
	for e, err := range audit.Read(t.Context(), path, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event == audit.Opened {
			es = append(es, e)
		}
	}
	return es
}

// TestMain is, with killedLog in its environment, the process that is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv(killedLog); path != "" {
		writeUntilKilled(path)
	}
	os.Exit(m.Run())
}

const killedLog = "AUDIT_TEST_LOG"

// writeUntilKilled prints the id of each record once Record has returned.
func writeUntilKilled(path string) {
	time.AfterFunc(30*time.Second, func() { os.Exit(1) }) // if no one kills it
	l, err := audit.Open(path, audit.Options{Node: "n1", MaxSize: 100 << 10, Keep: -1})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var out sync.Mutex
	for w := range 4 {
		go func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i)
				if err := l.Record(context.Background(), done(id)); err != nil {
					fmt.Println("error", err)
					os.Exit(1)
				}
				out.Lock()
				fmt.Println(id)
				out.Unlock()
			}
		}()
	}
	select {}
}

// A record survives kill -9 once Record has returned, and the chain holds.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var told []string
	for round := range 4 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killedLog+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if strings.HasPrefix(lines.Text(), "error") {
				t.Fatal(lines.Text())
			}
			told = append(told, lines.Text())
			if n == 200*(round+1) {
				cmd.Process.Kill()
			}
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() > 0 {
			t.Fatalf("the writer was not killed: %v", err)
		}
		verified(t, path) // as it was left
		l := mustOpen(t, path, options)
		write(t, l, fmt.Sprint("after-", round), 1)
		l.Close()
		verified(t, path)
	}
	kept := map[string]bool{}
	for _, id := range ids(t, path) {
		kept[id] = true
	}
	for _, id := range told {
		if !kept[id] {
			t.Errorf("record %s is lost", id)
		}
	}
}

func TestOpenContinues(t *testing.T) {
	tests := map[string]struct {
		leave func(lines []string) string // what the writer before has left
		cut   int                         // bytes
		ids   []string
	}{
		"a whole file": {func(l []string) string { return strings.Join(l, "") }, 0, []string{"c-1", "c-2", "new-1"}},
		"a line without its newline": {func(l []string) string {
			return strings.TrimSuffix(strings.Join(l, ""), "\n")
		}, -1, []string{"c-1", "new-1"}},
		"half a line":         {func(l []string) string { return l[0] + l[1] + l[2][:33] }, 33, []string{"c-1", "new-1"}},
		"two bytes of a line": {func(l []string) string { return l[0] + l[1] + l[2][:2] }, 2, []string{"c-1", "new-1"}},
		"zeros, as the death of a machine leaves them": {func(l []string) string {
			return l[0] + l[1] + strings.Repeat("\x00", 4096)
		}, 4096, []string{"c-1", "new-1"}},
		"a last line that is not a record": {func(l []string) string { return l[0] + l[1] + `{"log":"n1/b` + "\n" }, 13, []string{"c-1", "new-1"}},
		"half of the first line":           {func(l []string) string { return l[0][:20] }, 20, []string{"new-1"}},
		"an empty file":                    {func(l []string) string { return "" }, 0, []string{"new-1"}},
		"half a line of a megabyte": {func(l []string) string {
			return l[0] + l[1] + `{"log":"` + strings.Repeat("x", 1<<20)
		}, 1<<20 + 8, []string{"c-1", "new-1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			lines := logged(t, 2)
			if tt.cut < 0 {
				tt.cut = len(lines[2]) - 1
			}
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			if err := os.WriteFile(path, []byte(tt.leave(lines)), 0o600); err != nil {
				t.Fatal(err)
			}
			o := options
			o.Boot = "b2"
			write(t, mustOpen(t, path, o), "new", 1)
			report := verified(t, path)
			if report.First.Seq != 1 || int(report.Last.Seq) != report.Records || report.Torn != 0 {
				t.Errorf("report = %+v", report)
			}
			if diff := cmp.Diff(tt.ids, ids(t, path)); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
			all := opened(t, path)
			last := all[len(all)-1]
			if last.CutBytes != int64(tt.cut) || last.Log != "n1/b2" {
				t.Errorf("cut %d bytes in log %s, want %d in n1/b2", last.CutBytes, last.Log, tt.cut)
			}
		})
	}
}

func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := options
	o.MaxSize, o.Keep, o.Hold = 1500, 3, -1
	l := mustOpen(t, path, o)
	write(t, l, "c", 20)
	names, err := audit.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	var bases []string
	for _, name := range names {
		bases = append(bases, filepath.Base(name))
		if info, err := os.Stat(name); err != nil || info.Size() > 1500+600 {
			t.Errorf("%s: %d bytes, %v", name, info.Size(), err)
		}
	}
	if len(bases) != 4 || bases[3] != "audit.jsonl" || !slices.IsSorted(bases) || bases[0] == "audit-000001.jsonl" {
		t.Errorf("files %v", bases)
	}
	verified(t, path)
}

// A process that died between renaming the file and making the next one has lost
// nothing.
func TestOpenBetweenTwoFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := mustOpen(t, path, options)
	write(t, l, "c", 3)
	l.Close()
	if err := os.Rename(path, strings.Replace(path, "audit.", "audit-000007.", 1)); err != nil {
		t.Fatal(err)
	}
	o := options
	o.Boot, o.MaxSize = "b2", 1
	l = mustOpen(t, path, o)
	write(t, l, "new", 1)
	if report := verified(t, path); report.Records != 7 {
		t.Errorf("report = %+v", report)
	}
	names, _ := audit.Files(path)
	if !slices.Contains(names, strings.Replace(path, "audit.", "audit-000008.", 1)) {
		t.Errorf("files %v", names)
	}
}

// disk is a disk with so much room, and faults.
type disk struct {
	mu       sync.Mutex
	room     int64
	sync     error
	truncate error
	syncs    int
}

type diskFile struct {
	audit.File
	d *disk
}

func (d *disk) open(path string) (audit.File, error) {
	f, err := audit.OpenFile(path)
	return diskFile{f, d}, err
}

func (d *disk) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (f diskFile) WriteAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	fits := min(int64(len(b)), f.d.room)
	f.d.room -= fits
	n, err := f.File.WriteAt(b[:fits], off)
	if err == nil && n < len(b) {
		err = syscall.ENOSPC
	}
	return n, err
}

func (f diskFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.syncs++
	err := f.d.sync
	f.d.sync = nil // the system reports a failure once
	return errors.Join(err, f.File.Sync())
}

func (f diskFile) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.truncate != nil {
		return f.d.truncate
	}
	return f.File.Truncate(size)
}

func TestFullDisk(t *testing.T) {
	for name, stuck := range map[string]error{"what is torn is cut at once": nil, "what is torn cannot be cut at first": errors.New("stuck")} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			d := &disk{room: 1 << 20}
			l, err := audit.OpenOn(path, options, d.open)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			write(t, l, "before", 2)

			for range 3 {
				d.set(func() { d.room, d.truncate = 100, stuck })
				if err := l.Record(t.Context(), done("lost")); err == nil || !strings.Contains(err.Error(), path) {
					t.Fatalf("recorded on a full disk: %v", err)
				}
				if report := verified(t, path); report.Records != 3 || (report.Torn > 0) != (stuck != nil) {
					t.Errorf("on the full disk: %+v", report)
				}
				if err := l.Healthy(); err == nil {
					t.Fatal("healthy on a full disk")
				}
			}

			d.set(func() { d.room, d.truncate = 1<<20, nil })
			if err := l.Healthy(); err != nil {
				t.Errorf("with room again: %v", err)
			}
			write(t, l, "after", 2)
			if diff := cmp.Diff([]string{"before-1", "before-2", "after-1", "after-2"}, ids(t, path)); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
			if report := verified(t, path); int(report.Last.Seq) != report.Records || report.Torn != 0 {
				t.Errorf("report = %+v", report)
			}
			all := opened(t, path)
			if len(all) != 2 || all[1].Error == "" || (all[1].CutBytes > 0) != (stuck != nil) {
				t.Errorf("the log does not tell why it had stopped: %+v", all)
			}
		})
	}
}

// Only a fresh process may trust a disk that has failed to sync.
func TestSyncFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := options
	o.Sync = "always"
	d := &disk{room: 1 << 20}
	l, err := audit.OpenOn(path, o, d.open)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	write(t, l, "before", 1)
	d.set(func() { d.sync = syscall.EIO })
	if err := l.Record(t.Context(), done("lost")); !errors.Is(err, syscall.EIO) {
		t.Errorf("err = %v", err)
	}
	if err := l.Record(t.Context(), done("lost")); !errors.Is(err, syscall.EIO) {
		t.Errorf("the next record: err = %v", err)
	}
	if err := l.Healthy(); !errors.Is(err, syscall.EIO) {
		t.Errorf("healthy = %v", err)
	}
	l.Close()
	write(t, mustOpen(t, path, o), "after", 1)
	verified(t, path)
}

// A record is on disk soon after, and with sync always when Record returns;
// records that wait together share a sync.
func TestSync(t *testing.T) {
	for _, mode := range []string{"group", "always"} {
		t.Run(mode, func(t *testing.T) {
			d := &disk{room: 1 << 30}
			o := options
			o.Sync = mode
			l, err := audit.OpenOn(filepath.Join(t.TempDir(), "audit.jsonl"), o, d.open)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			const writers, each = 8, 50
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() { write(t, l, fmt.Sprint(w), each) })
			}
			wg.Wait()
			var syncs int
			d.set(func() { syncs = d.syncs })
			if mode == "always" && (syncs == 0 || syncs >= writers*each) {
				t.Errorf("%d syncs for %d records", syncs, writers*each)
			}
			for deadline := time.Now().Add(time.Minute); syncs == 0; d.set(func() { syncs = d.syncs }) {
				if time.Now().After(deadline) {
					t.Fatal("no sync in the background")
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// Records in a file that was taken away would be no evidence.
func TestFileTakenAway(t *testing.T) {
	take := map[string]func(path string) error{
		"removed": os.Remove,
		"renamed": func(path string) error { return os.Rename(path, path+".1") },
	}
	for name, take := range take {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			o := options
			o.Sync = "always" // looks after every record
			l := mustOpen(t, path, o)
			write(t, l, "before", 2)
			if err := take(path); err != nil {
				t.Fatal(err)
			}
			write(t, l, "notices", 1)
			write(t, l, "after", 2)
			e := opened(t, path)
			if len(e) == 0 || !strings.Contains(e[len(e)-1].Error, "another program") {
				t.Errorf("the log does not tell of it: %+v", e)
			}
			if got := ids(t, path); !slices.Contains(got, "after-1") || !slices.Contains(got, "after-2") {
				t.Errorf("ids %v", got)
			}
			if name == "renamed" {
				if _, err := audit.VerifyFiles([]string{path + ".1", path}, audit.Head{}); err != nil {
					t.Errorf("the chain does not run on: %v", err)
				}
			}
		})
	}
}

// A file that another program shortened, as logrotate's copytruncate does, is noticed before the
// next record: nothing is written behind a gap, the log says what happened, and what is in the file
// from then on can be verified.
func TestFileShortened(t *testing.T) {
	for name, keep := range map[string]func(text []byte) int{
		"to nothing":      func([]byte) int { return 0 },
		"to whole lines":  func(text []byte) int { return bytes.IndexByte(text, '\n') + 1 },
		"inside a line":   func(text []byte) int { return len(text) - 10 },
		"by one byte":     func(text []byte) int { return len(text) - 1 },
		"copied and gone": nil,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			l := mustOpen(t, path, options)
			write(t, l, "before", 3)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			size := 0
			if keep != nil {
				size = keep(text)
			} else if err := os.WriteFile(path+".1", text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, int64(size)); err != nil {
				t.Fatal(err)
			}
			write(t, l, "after", 2)
			if now, err := os.ReadFile(path); err != nil || bytes.IndexByte(now, 0) >= 0 {
				t.Errorf("the file has a gap: %v", err)
			}
			if e := opened(t, path); len(e) == 0 || !strings.Contains(e[len(e)-1].Error, "another program shortened the file") {
				t.Errorf("the log does not tell of it: %+v", e)
			}
			if got := ids(t, path); !slices.Contains(got, "after-1") || !slices.Contains(got, "after-2") {
				t.Errorf("ids %v", got)
			}
			if keep == nil {
				if _, err := audit.VerifyFiles([]string{path + ".1", path}, audit.Head{}); err != nil {
					t.Errorf("the chain does not run on: %v", err)
				}
			}
		})
	}
}

func TestRecordTooLong(t *testing.T) {
	unraced.Long(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := options
	o.Record = "full"
	l := mustOpen(t, path, o)
	r := done("long")
	r.Result = gate.MustDoc(`{"text":"` + strings.Repeat("x", 65<<20) + `"}`)
	if err := l.Record(t.Context(), r); err == nil || !strings.Contains(err.Error(), "longer than a line may be") {
		t.Errorf("err = %v", err)
	}
	write(t, l, "c", 1)
	if report := verified(t, path); report.Records != 2 {
		t.Errorf("report = %+v", report)
	}
}
