package compiler

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// limits bound what compiling one module may take.
type limits struct {
	// code is how many bytes of machine code it may have: far below what any
	// displacement in it can reach, which the engine does not check (2 GiB on amd64).
	code   int64
	memory uint64        // bytes that a child may have, in addition to those with which it begins
	cpu    time.Duration // of a child, whole seconds
	// time ends a child that waits for what never comes. It is long, since a child runs when
	// nothing else wants the processors: what a module costs is its CPU.
	time time.Duration
}

// bounds are the limits of this program.
func bounds() limits {
	l := limits{code: 256 << 20, memory: slower << 30, cpu: slower * time.Minute, time: slower * time.Hour}
	if !Apart() {
		l.code /= 4
	}
	return l
}

// cpuSpent is the exit code of a child that has used up its CPU by the system's limit,
// which Linux may count by ticks: then it has had less.
const cpuSpent = 4

// childName is the argv[0] by which Main knows that it is asked to compile.
const childName = "wasmgate-compiler"

var mainCalled atomic.Bool

// Main compiles a module if this process was started for that, and does not return
// then. A program calls it first thing in main, and otherwise compiles within the
// process, under a quarter of the bounds.
func Main() {
	mainCalled.Store(true)
	if len(os.Args) > 0 && os.Args[0] == childName {
		syscall.Exit(child()) // not os.Exit, which in a program built with -race sleeps for a second
	}
}

// Apart reports whether modules are compiled by a child.
func Apart() bool { return mainCalled.Load() && !emulated.Load() }

// emulated says that the system cannot run this program, although it runs: an emulator of its
// processor does (qemu-user), which the system does not know of.
var emulated atomic.Bool

// ErrNoChild is why a module was not compiled: no child can start, and from now on modules
// are compiled in this process, under a quarter of the bounds.
var ErrNoChild = errors.New("the system cannot start this program again to compile modules; it runs in an emulator")

// An order is what a child is to do. Its standard input stays open as long as the process that
// ordered it lives.
type order struct {
	Dir  string // an empty folder, for two caches
	WASM []byte
}

type report struct {
	Error string `json:"error,omitempty"` // "" if the module is compiled
}

// child is the life of a child. Its arguments are its limits: bytes of memory, and
// seconds of CPU. It says on standard output how it went.
func child() int {
	var l limits
	var seconds int64
	if _, err := fmt.Sscan(strings.Join(os.Args[1:], " "), &l.memory, &seconds); err != nil {
		fmt.Fprintf(os.Stderr, "%s: only a gateway starts this program: read the limits: %v\n", childName, err)
		return 2
	}
	l.cpu = time.Duration(seconds) * time.Second
	if err := l.restrict(); err != nil {
		fmt.Fprintf(os.Stderr, "limit the compiler: %v\n", err)
		return 1
	}
	// The collector works harder before the limit, which the machine code counts into, too. At
	// a half it took twice as long for what needs most.
	debug.SetMemoryLimit(int64(l.memory / 4 * 3))
	var o order
	if err := gob.NewDecoder(os.Stdin).Decode(&o); err != nil {
		fmt.Fprintf(os.Stderr, "%s: only a gateway starts this program: read the order: %v\n", childName, err)
		return 2
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		syscall.Exit(3) // the gateway is gone
	}()
	var r report
	if err := compileBoth(context.Background(), o.Dir, o.WASM, min(runtime.GOMAXPROCS(0), rewrite.Workers)); err != nil {
		r.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return 1
	}
	return 0
}

// compileBoth compiles a module, and its outline to learn by which name the engine looks
// for that.
func compileBoth(ctx context.Context, dir string, wasm []byte, workers int) error {
	if err := compileHere(ctx, filepath.Join(dir, ofModule), wasm, workers); err != nil {
		return err
	}
	return compileHere(ctx, filepath.Join(dir, ofOutline), rewrite.Outline(wasm), workers)
}

// compileHere compiles a module in this process, by so many workers, and leaves the
// machine code in a folder.
func compileHere(ctx context.Context, dir string, wasm []byte, workers int) (err error) {
	defer func() {
		if p := recover(); p != nil { // one of the first worker, in whose goroutine this is
			err = fmt.Errorf("panic in the engine: %.200v", p)
		}
	}()
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	engine := wazero.NewRuntimeWithConfig(ctx, Config().WithCompilationCache(cache))
	_, err = engine.CompileModule(experimental.WithCompilationWorkers(ctx, workers), wasm)
	return errors.Join(err, engine.Close(ctx), cache.Close(ctx))
}

// compile compiles a module into a folder: by a child, if this program has one.
func (l limits) compile(ctx context.Context, dir string, wasm []byte) error {
	if !Apart() {
		return compileBoth(ctx, dir, wasm, 1)
	}
	patient, cancel := context.WithTimeout(ctx, l.time)
	defer cancel()
	program, err := executable()
	if err != nil {
		return err
	}
	c := exec.CommandContext(patient, program)
	c.Args = []string{childName, fmt.Sprint(l.memory), fmt.Sprint(int64(l.cpu / time.Second))}
	c.Env, c.Dir = environment(), dir
	c.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	said := head{max: 4 << 10}
	c.Stdout, c.Stderr = &out, &said
	prepare(c)
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	switch err := c.Start(); {
	case errors.Is(err, syscall.ENOEXEC):
		emulated.Store(true)
		return ErrNoChild
	case err != nil:
		return fmt.Errorf("start the compiler: %w", err)
	}
	release, err := l.confine(c.Process)
	if err != nil {
		return errors.Join(fmt.Errorf("limit the compiler: %w", err), c.Process.Kill(), c.Wait())
	}
	defer release()
	_ = gob.NewEncoder(in).Encode(order{dir, wasm}) // a child that ended says why
	err = c.Wait()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case patient.Err() != nil:
		return fmt.Errorf("it was not compiled within %v, in which the compiler had %v of CPU: the machine is too busy; try again when it is less", l.time, cpu(c.ProcessState).Round(time.Millisecond))
	default:
		return l.ending(c.ProcessState, err, string(said.buf))
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return fmt.Errorf("the process that compiles modules gave a malformed answer: %w", err)
	}
	switch {
	case r.Error == "":
		return nil
	case outOfMemory.MatchString(r.Error): // the engine's, which panics if it cannot map machine code
		return l.tooMuchMemory()
	}
	return errors.New(r.Error)
}

func (l limits) tooMuchMemory() error {
	return costly("it takes more than %d MiB of memory", l.memory>>20)
}

// outOfMemory is what the engine and the runtimes of Go, C and the race detector say; a thread needs memory, too.
var outOfMemory = regexp.MustCompile("out of memory|cannot allocate memory|errno=12|errno: 12|pthread_create failed|failed to create new OS thread")

func cpu(state *os.ProcessState) time.Duration { return state.UserTime() + state.SystemTime() }

// ending says why a child has ended without a report.
func (l limits) ending(state *os.ProcessState, err error, said string) error {
	switch {
	case state.ExitCode() == cpuSpent, cpu(state) >= l.cpu-time.Second/2:
		return costly("it takes more than %v of CPU time", l.cpu)
	case outOfMemory.MatchString(said):
		return l.tooMuchMemory()
	}
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	return fmt.Errorf("the compiler failed at it: %w: %.200q", err, first)
}

// A head keeps the beginning of what a child says, in which the reason is.
type head struct {
	buf []byte
	max int
}

// Write implements [io.Writer].
func (h *head) Write(p []byte) (int, error) {
	h.buf = append(h.buf, p[:min(len(p), h.max-len(h.buf))]...)
	return len(p), nil
}
