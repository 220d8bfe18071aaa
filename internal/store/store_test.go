package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/store"
	"github.com/wasmgate/wasmgate/internal/testing/storetest"
)

func open(t *testing.T, dsn string) *store.DB {
	t.Helper()
	d, err := store.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestFile(t *testing.T) {
	storetest.Jobs(t, func(t *testing.T) jobs.Store { return open(t, filepath.Join(t.TempDir(), "a b?c%20#d.db")) })
}

func TestMemory(t *testing.T) {
	storetest.Jobs(t, func(t *testing.T) jobs.Store { return open(t, store.Memory) })
}

var owner = gate.Owner{ID: "alice"}

func job(id string) jobs.Job {
	return jobs.Job{ID: id, Owner: owner, Node: "n", Boot: "b", Tool: "t", Call: "c", State: jobs.Running, Started: time.Now(), Keep: time.Hour}
}

func TestFileIsItsOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes on Windows")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "jobs.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d := open(t, path)
	if err := d.AddJob(t.Context(), job("1")); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 2 {
		t.Errorf("%d files: the journal is not beside the database", len(files))
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", f.Name(), info.Mode(), err)
		}
	}
}

func TestReopened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	first, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.AddJob(t.Context(), job("1")); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err := open(t, path).Job(t.Context(), owner, "1"); err != nil || j.Tool != "t" {
		t.Errorf("job %+v, %v", j, err)
	}
}

// What is given up must not be read out of the file afterwards.
func TestGivenUpIsOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	d, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	j := job("1")
	secret := strings.Repeat("a private sentence ", 1000)
	if err := d.AddJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	j.State, j.Ended = jobs.Completed, time.Now()
	if err := d.EndJob(t.Context(), j, gate.MustDoc(`{"text":"`+secret+`"}`)); err != nil {
		t.Fatal(err)
	}
	if err := d.TrimJobs(t.Context(), "n", j.Expires(), jobs.Bounds{Jobs: 9, Bytes: 1 << 20, After: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err != nil || bytes.Contains(b, []byte("private sentence")) {
			t.Errorf("%s still holds the result (%v)", f, err)
		}
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	full := func(t *testing.T, path string) {
		d, err := store.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range strings.Split(strings.Repeat("x", 400), "") {
			if err := d.AddJob(t.Context(), job(id+time.Now().String())); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		make func(t *testing.T, path string)
		want []string
	}{
		"no database": {func(t *testing.T, path string) {
			write(t, path, bytes.Repeat([]byte("this is not a database. "), 500))
		}, []string{"is damaged", "left as it is", "move it away"}},
		"overwritten in the middle": {func(t *testing.T, path string) {
			full(t, path)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			copy(b[len(b)/2:], bytes.Repeat([]byte("x"), 8192))
			write(t, path, b)
		}, []string{"is damaged", "left as it is", "move it away"}},
		"cut off": {func(t *testing.T, path string) {
			full(t, path)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, b[:len(b)/2])
		}, []string{"is damaged", "left as it is", "move it away"}},
		"of a newer version": {func(t *testing.T, path string) {
			full(t, path)
			d, err := store.Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.SQL(d).Exec("PRAGMA user_version = 99"); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}, []string{"a newer wasmgate has written it (version 99", "move the file away"}},
		"in a folder that is none": {func(*testing.T, string) {}, []string{"no such file or directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			if name == "in a folder that is none" {
				if runtime.GOOS == "windows" {
					t.Skip("Windows words it otherwise")
				}
				path = filepath.Join(filepath.Dir(path), "none", "jobs.db")
			}
			tt.make(t, path)
			before, _ := os.ReadFile(path)
			d, err := store.Open(t.Context(), path)
			if err == nil {
				d.Close()
				t.Fatal("it was opened")
			}
			for _, want := range append(tt.want, path) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTablesAreBroughtUpToDate(t *testing.T) {
	d := open(t, store.Memory)
	db := store.SQL(d)
	steps := []string{"never taken again: this is not a SQL", "CREATE TABLE second (a)", "INSERT INTO second VALUES (3)"}
	if err := store.Migrate(t.Context(), db, steps); err != nil { // the program's tables are version 1
		t.Fatal(err)
	}
	var n, version int
	if err := db.QueryRow("SELECT a FROM second").Scan(&n); err != nil || n != 3 {
		t.Errorf("%d, %v", n, err)
	}
	if err := store.Migrate(t.Context(), db, append(steps, "CREATE TABLE fourth (a)", "broken")); err == nil {
		t.Error("a step that fails is not an error")
	}
	if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil || version != 3 {
		t.Errorf("version %d, %v", version, err)
	}
	if err := db.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name = 'fourth'").Scan(&n); err != nil || n != 0 {
		t.Errorf("half of the steps were taken: %d, %v", n, err)
	}
}
