package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A Server runs until [Main] returns, or it is stopped.
type Server struct {
	bin, dir string
	port     int
	options  []string
	process  *exec.Cmd
	number   atomic.Int64 // of databases
}

var (
	once    sync.Once
	one     *Server
	missing error
	mu      sync.Mutex
	all     []*Server
)

// Main runs the tests by run, and ends the servers that they have started. It returns their exit
// code.
func Main(m *testing.M, run func(*testing.M) int) int {
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range all {
			s.Close()
		}
	}()
	return run(m)
}

// Shared returns the server that all tests of the package use. The package's TestMain calls [Main].
func Shared(t testing.TB) *Server {
	t.Helper()
	once.Do(func() { one, missing = start() })
	need(t, missing)
	return one
}

func need(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("WASMGATE_POSTGRES") == "require":
		t.Fatalf("PostgreSQL: %v", err)
	default:
		t.Skipf("no PostgreSQL: %v", err)
	}
}

// Start returns a server of the test's own, which ends with it. Options are settings of the
// server, such as "max_connections=20".
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	s, err := start(options...)
	need(t, err)
	t.Cleanup(s.Stop)
	return s
}

func start(options ...string) (*Server, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "postgres")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, options: options}
	mu.Lock()
	all = append(all, s)
	mu.Unlock()
	if err := give(dir); err != nil {
		return nil, err
	}
	init := s.command("initdb", "--pgdata", filepath.Join(dir, "data"), "--username", "wasmgate", "--auth", "trust", "--no-sync")
	if out, err := init.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.port = ln.Addr().(*net.TCPAddr).Port
	return s, errors.Join(ln.Close(), s.Run())
}

// find returns the folder of initdb and postgres.
func find() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path) // the others are next to it
		return filepath.Dir(path), err
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.Join(errors.New("initdb is not installed; on Debian: apt-get install postgresql"), err)
	}
	return filepath.Dir(slices.Max(found)), nil
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.bin, name), args...)
	c.Dir = s.dir
	c.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	unprivileged(c)
	return c
}

// Run starts the server again after [Server.Stop], and waits until it answers.
func (s *Server) Run() error {
	args := []string{"-D", filepath.Join(s.dir, "data"), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-k", "", "-c", "fsync=off"}
	for _, o := range s.options {
		args = append(args, "-c", o)
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.process = s.command("postgres", args...)
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		return err
	}
	for range 1200 {
		if _, err = s.psql("postgres", "select 1"); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	said, _ := os.ReadFile(log.Name())
	return fmt.Errorf("postgres does not answer: %w: %s", err, said)
}

// Open starts a server for a program that is no test, and returns the URL of a database. It must be
// closed.
func Open() (s *Server, url string, err error) {
	if s, err = start(); err != nil {
		return nil, "", err
	}
	return s, s.URL("postgres"), nil
}

// Close ends a server, and removes its files.
func (s *Server) Close() {
	s.Stop()
	os.RemoveAll(s.dir)
}

// Stop ends the server at once, with all connections.
func (s *Server) Stop() {
	s.end(syscall.SIGINT) // a fast shutdown
}

// Kill ends the server as a crash does: a standby gets nothing more.
func (s *Server) Kill() { s.end(syscall.SIGQUIT) }

func (s *Server) end(by os.Signal) {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Signal(by)
	_ = s.process.Wait()
	s.process = nil
}

func (s *Server) psql(database, query string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := s.command("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", s.URL(database), "-c", query)
	killed := exec.CommandContext(ctx, c.Path, c.Args[1:]...)
	killed.Dir, killed.Env, killed.SysProcAttr = c.Dir, c.Env, c.SysProcAttr
	out, err := killed.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("psql: %w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// URL is that of a database of the server.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://wasmgate@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Port is where the server listens on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// New returns the URL of an empty database.
func (s *Server) New(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", s.number.Add(1))
	s.Do(t, s.URL("postgres"), "create database "+name)
	return s.URL(name)
}

// Do runs a query, and returns the rows: columns are separated by |.
func (s *Server) Do(t testing.TB, url, query string) string {
	t.Helper()
	name, _, _ := strings.Cut(filepath.Base(url), "?")
	rows, err := s.psql(name, query)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Standby returns a streaming standby of the server, which ends with the test. It is asynchronous.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "standby")
	if err != nil {
		t.Fatal(err)
	}
	standby := &Server{bin: s.bin, dir: dir, options: s.options}
	t.Cleanup(standby.Close)
	if err := give(dir); err != nil {
		t.Fatal(err)
	}
	copied := s.command("pg_basebackup", "--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--pgdata", filepath.Join(dir, "data"), "--dbname", s.URL("postgres"))
	if out, err := copied.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v: %s", err, out)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	standby.port = ln.Addr().(*net.TCPAddr).Port
	if err := errors.Join(ln.Close(), standby.Run()); err != nil {
		t.Fatal(err)
	}
	return standby
}

// CatchUp waits until a standby has all that its primary has now.
func (s *Server) CatchUp(t testing.TB, primary *Server) {
	t.Helper()
	to := primary.Do(t, primary.URL("postgres"), "select pg_current_wal_lsn()")
	for range 600 {
		if s.Do(t, s.URL("postgres"), "select pg_last_wal_replay_lsn() >= '"+to+"'") == "t" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the standby lags behind")
}

// Part has a standby get nothing more from its primary.
func (s *Server) Part(t testing.TB) {
	t.Helper()
	s.Do(t, s.URL("postgres"), "alter system set primary_conninfo = ''")
	s.Do(t, s.URL("postgres"), "select pg_reload_conf()")
	for range 600 {
		if s.Do(t, s.URL("postgres"), "select count(*) from pg_stat_wal_receiver") == "0" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the standby is still connected to its primary")
}

// Promote makes a standby the primary.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	if s.Do(t, s.URL("postgres"), "select pg_promote(true, 60)") != "t" {
		t.Fatal("the standby is not promoted")
	}
}
