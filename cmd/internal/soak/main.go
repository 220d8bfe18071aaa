//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	name := flag.String("server", "", "serve MCP under this name, as one of the servers of a run")
	folder := flag.String("folder", "", "folder of the run")
	binary := flag.String("wasmgate", "", "the program that is shaken")
	length := flag.Duration("for", 30*time.Second, "how long calls are made")
	every := flag.Duration("every", 50*time.Second, "between two events")
	clients := flag.Int("clients", 8, "clients at a time")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano())&0xffffff, "of the calls")
	flag.Parse()
	if *name != "" {
		if err := serve(*name, *folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	s := &soak{folder: *folder, binary: *binary, every: *every}
	wrong, err := s.run(*length, *clients, *seed)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, what := range wrong {
		fmt.Fprintln(os.Stderr, "WRONG:", what)
	}
	if len(wrong) > 0 {
		os.Exit(3)
	}
}

// servers are those of a run: a process for each client, and one for all.
var servers = []string{"own", "shared"}

// A soak is one run.
type soak struct {
	folder, binary, url string
	every               time.Duration
	self                string
	log                 *os.File
	gateway             *exec.Cmd
	gone                chan error   // when the gateway has ended
	listed              atomic.Int64 // when something last happened by which lists may change, in Unix milliseconds
	killed              []time.Time  // when the gateway was ended without warning
	told                []told
	nothing             atomic.Int64 // times at which the watcher heard of a change that was none
	nothingAt           atomic.Int64 // the last of them, in Unix milliseconds
	heard               atomic.Int64
	mostRSS, mostFDs    []int    // KiB and descriptors, a row a sample
	failed              []string // events that could not be made to happen
}

func (s *soak) run(length time.Duration, clients int, seed uint64) (wrong []string, err error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	defer s.unmount()
	if err := s.start(); err != nil {
		return nil, err
	}
	defer func() { s.kill() }()
	fmt.Printf("seed %d, %v, an event every %v\n", seed, length, s.every)
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	l := &load{url: s.url, found: make(chan told, 100)}
	var working, listening sync.WaitGroup
	for i := range clients {
		working.Go(func() { l.run(ctx, i%3, servers, seed+uint64(i)*1000) })
	}
	listening.Go(func() {
		for t := range l.found {
			s.told = append(s.told, t)
		}
	})
	watching, stop := context.WithCancel(context.Background())
	var watcher sync.WaitGroup
	watcher.Go(func() { s.watch(watching) })
	s.shake(ctx)
	working.Wait()
	close(l.found)
	listening.Wait()
	stop()
	watcher.Wait()
	if err := s.end(); err != nil {
		wrong = append(wrong, "the gateway did not end in order: "+err.Error())
	}
	return append(wrong, s.join()...), nil
}

// prepare writes the configuration, and mounts a small disk for the log where it may.
func (s *soak) prepare() (err error) {
	if s.self, err = os.Executable(); err != nil {
		return err
	}
	if s.folder == "" {
		if s.folder, err = os.MkdirTemp("", "wasmgate-soak-"); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(s.disk(), 0o700); err != nil {
		return err
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=512m,mode=700", "tmpfs", s.disk()).CombinedOutput(); err != nil {
		fmt.Printf("no disk of its own for the log, which is never full then: %s\n", bytes.TrimSpace(out))
	}
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer at.Close()
	s.url = "http://" + at.Addr().String() + "/mcp"
	if s.log, err = os.Create(s.path("gateway.log")); err != nil {
		return err
	}
	if err := os.WriteFile(s.path("grants.yaml"), []byte(`- {to: ["*"], servers: [own, shared], except: ["own__secret", "shared__secret"]}`+"\n"), 0o600); err != nil {
		return err
	}
	return s.configure(32)
}

func (s *soak) path(name string) string { return filepath.Join(s.folder, name) }
func (s *soak) disk() string            { return s.path("disk") }
func (s *soak) unmount()                { _ = exec.Command("umount", s.disk()).Run() }

// configure writes the configuration with a limit that a reload takes over.
func (s *soak) configure(session int) error {
	at := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
	return os.WriteFile(s.path("wasmgate.yaml"), fmt.Appendf(nil, `version: 1
listen: %s
servers:
  own: {command: %q, args: [-server, own, -folder, %q], timeout: 8s}
  shared: {command: %q, args: [-server, shared, -folder, %q], timeout: 8s, sessions: shared}
audit: {path: disk/audit.jsonl, max_size: 1MiB, keep: 1000}
limits: {session: %d}
state: state/
`, at, s.self, s.folder, s.self, s.folder, session), 0o600)
}

// start starts the gateway, and returns when its servers are ready.
func (s *soak) start() error {
	s.listed.Store(time.Now().Add(time.Hour).UnixMilli())
	defer func() { s.listed.Store(time.Now().Add(10 * time.Second).UnixMilli()) }() // however long the servers took
	s.gateway = exec.Command(s.binary, "serve", "--config", s.path("wasmgate.yaml"))
	s.gateway.Stdout, s.gateway.Stderr = s.log, s.log
	if err := s.gateway.Start(); err != nil {
		return err
	}
	s.gone = make(chan error, 1)
	go func(c *exec.Cmd) { s.gone <- c.Wait() }(s.gateway)
	for range 600 {
		if res, err := http.Get(strings.TrimSuffix(s.url, "/mcp") + "/healthz"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				_ = s.wasmgate("status", "--check") // waits for the servers, which calls may end meanwhile
				return nil
			}
		}
		select {
		case err := <-s.gone:
			return fmt.Errorf("the gateway ended at its start: %w; see %s", err, s.log.Name())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return errors.New("the gateway is not there after a minute")
}

// wasmgate runs a command on the configuration.
func (s *soak) wasmgate(args ...string) error {
	out, err := exec.Command(s.binary, append(args, "--config", s.path("wasmgate.yaml"))...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("wasmgate %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// end ends the gateway as an operator does, and waits for it.
func (s *soak) end() error {
	if err := s.gateway.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-s.gone:
		return err
	case <-time.After(60 * time.Second):
		return errors.New("it still runs a minute after SIGTERM")
	}
}

func (s *soak) kill() {
	if s.gateway.ProcessState == nil {
		_ = s.gateway.Process.Kill()
		<-s.gone
	}
}

// An event is something that befalls the gateway.
type event struct {
	name  string
	lists bool // may change
	do    func(*soak) error
}

var events = []event{
	{"a reload", false, func(s *soak) error { return s.configure(31) }},
	{"grant and revoke", true, func(s *soak) error {
		return errors.Join(s.wasmgate("grant", "own__secret"), pause(), s.wasmgate("revoke", "own__secret"))
	}},
	{"a server killed", false, func(s *soak) error { return s.signal(syscall.SIGKILL, "shared") }},
	{"a tool that changes", true, func(s *soak) error {
		return errors.Join(os.WriteFile(changed(s.folder), nil, 0o600), pause(), pause(), os.Remove(changed(s.folder)), pause())
	}},
	{"a full disk", false, (*soak).fill},
	{"pause and resume", false, func(s *soak) error { return errors.Join(s.wasmgate("pause"), pause(), s.wasmgate("resume")) }},
	{"the gateway killed", true, func(s *soak) error {
		s.killed = append(s.killed, time.Now())
		s.kill()
		return s.start()
	}},
	{"a broken configuration", false, func(s *soak) error {
		return errors.Join(os.WriteFile(s.path("wasmgate.yaml"), []byte("version: 1\nservers: {own: {comand: x}}\n"), 0o600), pause(), s.configure(32))
	}},
	{"servers that stand still", false, func(s *soak) error {
		return errors.Join(s.signal(syscall.SIGSTOP, ""), pause(), s.signal(syscall.SIGCONT, ""))
	}},
	{"a drain", true, func(s *soak) error { return errors.Join(s.end(), s.start()) }},
}

func pause() error { time.Sleep(time.Second); return nil }

// shake has one event after the other happen until ctx ends.
func (s *soak) shake(ctx context.Context) {
	began := time.Now()
	for i := 0; ; i++ {
		sleep(ctx, s.every)
		if ctx.Err() != nil {
			return
		}
		e := events[i%len(events)]
		if e.lists {
			s.listed.Store(time.Now().Add(time.Hour).UnixMilli())
		}
		err := e.do(s)
		if e.lists {
			s.listed.Store(time.Now().Add(10 * time.Second).UnixMilli())
		}
		rss, fds, children := s.holds()
		s.mostRSS, s.mostFDs = append(s.mostRSS, rss), append(s.mostFDs, fds)
		if err != nil && !errors.Is(err, errLeftOut) {
			s.failed = append(s.failed, fmt.Sprintf("%s: %v", e.name, err))
		}
		fmt.Printf("%6.1f s  %-26s %4d MiB, %3d descriptors, %2d processes of servers  %v\n", time.Since(began).Seconds(), e.name, rss>>10, fds, children, orOK(err))
	}
}

func orOK(err error) any {
	if err == nil {
		return "ok"
	}
	return err
}

var errLeftOut = errors.New("left out: the log has no disk of its own")

// fill fills the disk of the log for some seconds.
func (s *soak) fill() error {
	path := filepath.Join(s.disk(), "filler")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	defer f.Close()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(s.disk(), &stat); err != nil || int64(stat.Blocks)*stat.Bsize > 1<<30 {
		return errors.Join(err, errLeftOut)
	}
	_, err = io.Copy(f, io.LimitReader(zeros{}, 1<<30))
	if !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk is not full: %w", err)
	}
	time.Sleep(3 * time.Second)
	return nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// signal sends a signal to the servers of a name; "" are all.
func (s *soak) signal(sig syscall.Signal, name string) error {
	for _, pid := range s.processes(name) {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// processes returns the processes of servers of this run: those of a name, or all.
func (s *soak) processes(name string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		args := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
		if len(args) == 5 && args[0] == s.self && args[1] == "-server" && args[4] == s.folder && (name == "" || args[2] == name) {
			var pid int
			_, _ = fmt.Sscanf(path, "/proc/%d/", &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

// holds returns what the gateway holds: resident memory in KiB, descriptors, and processes of servers.
func (s *soak) holds() (rss, fds, children int) {
	dir := fmt.Sprintf("/proc/%d", s.gateway.Process.Pid)
	b, _ := os.ReadFile(dir + "/status")
	if _, after, ok := strings.Cut(string(b), "VmRSS:"); ok {
		_, _ = fmt.Sscanf(after, "%d", &rss)
	}
	open, _ := os.ReadDir(dir + "/fd")
	return rss, len(open), len(s.processes(""))
}

// watch listens for changes of lists that a client hears of, and looks whether they have changed.
func (s *soak) watch(ctx context.Context) {
	var last atomic.Uint64
	for ctx.Err() == nil {
		changes := make(chan struct{}, 100)
		c := mcp.NewClient(&mcp.Implementation{Name: "watcher", Version: "1"}, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changes <- struct{}{} },
		})
		session, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: s.url, MaxRetries: -1}, nil)
		if err != nil {
			sleep(ctx, 500*time.Millisecond)
			continue
		}
		for ctx.Err() == nil {
			now, err := digest(ctx, session)
			if err != nil {
				break
			}
			last.Store(now)
			select {
			case <-changes:
				s.heard.Add(1)
				now, err := digest(ctx, session)
				if err == nil && now == last.Load() && time.Now().UnixMilli() > s.listed.Load() {
					s.nothing.Add(1)
					s.nothingAt.Store(time.Now().UnixMilli())
				}
			case <-time.After(2 * time.Second):
			case <-ctx.Done():
			}
		}
		session.Close()
	}
}

// digest tells one list of tools from another.
func digest(ctx context.Context, session *mcp.ClientSession) (uint64, error) {
	timed, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	list, err := session.ListTools(timed, nil)
	if err != nil {
		return 0, err
	}
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name+" "+t.Description)
	}
	slices.Sort(names)
	h := fnv.New64a()
	for _, n := range names {
		_, _ = h.Write([]byte(n + "\n"))
	}
	return h.Sum64(), nil
}
