package confine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/confine"
)

// The test binary is also the programs that the tests start: "helper MODE".
// With "plain" for "helper" it is a program that does not call Main.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "plain" {
		os.Exit(helper(os.Args[2], os.Args[3:]))
	}
	if len(os.Args) == 2 && filepath.Base(os.Args[1]) == "unready" { // the supervisor of such a program
		<-time.After(time.Minute)
	}
	confine.Main()
	if len(os.Args) > 2 && os.Args[1] == "helper" {
		os.Exit(helper(os.Args[2], os.Args[3:]))
	}
	code := m.Run()
	os.RemoveAll(builds)
	os.Exit(code)
}

// builds is the folder of what the tests build, if they do.
var builds string

func helper(mode string, args []string) int {
	switch mode {
	case "echo":
		say()
		io.Copy(os.Stdout, os.Stdin)
	case "exit":
		code, _ := strconv.Atoi(args[0])
		fmt.Println("last words")
		fmt.Fprintln(os.Stderr, "on stderr")
		return code
	case "suicide":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "deaf": // to the end of its input
		say()
		<-time.After(time.Minute)
	case "stubborn": // deaf to SIGTERM too
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		say()
		<-time.After(time.Minute)
	case "closed": // lives on with stdin and stdout closed
		os.Stdin.Close()
		os.Stdout.Close()
		<-time.After(time.Minute)
	case "daemon": // forks a stubborn process away, and goes on as another helper
		start("fork", &syscall.SysProcAttr{Setsid: true}).Wait()
		return helper(args[0], args[1:])
	case "fork":
		start("stubborn", &syscall.SysProcAttr{Setsid: true})
	case "family": // has a stubborn child in its own group, and echoes
		start("stubborn", nil)
		return helper("echo", nil)
	case "describe":
		wd, _ := os.Getwd()
		json.NewEncoder(os.Stdout).Encode(description{os.Args, quoted(os.Environ()), wd})
	case "gateway":
		return gateway(args)
	case "confine", "confine anyway":
		cmd := command("exit", "0")
		cmd.Confine = &confine.Rules{BestEffort: mode == "confine anyway"}
		if c, err := confine.Start(context.Background(), cmd); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println("started", c.Close(time.Second))
		}
	}
	return 0
}

type description struct {
	Args, Env []string
	Dir       string
}

// quoted makes bytes survive JSON.
func quoted(list []string) (q []string) {
	for _, s := range list {
		q = append(q, strconv.Quote(s))
	}
	return q
}

// gateway starts a helper and holds it until stdin ends; then it closes it.
func gateway(args []string) int {
	ok, why := confine.Supervised()
	fmt.Println("supervised:", ok, why)
	c, err := confine.Start(context.Background(), command(args[0], args[1:]...))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	go io.Copy(os.Stdout, c.Stdout())
	io.Copy(io.Discard, os.Stdin)
	if err := c.Close(100 * time.Millisecond); err != nil {
		return 1
	}
	return 0
}

// start starts a helper and returns when it has spoken, repeating its words.
func start(mode string, attr *syscall.SysProcAttr) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", "helper", mode)
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, attr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		panic(err)
	}
	words, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		panic(err)
	}
	fmt.Print(words)
	return cmd
}

func say() { fmt.Println(os.Getpid(), os.Getppid()) }

// mark is the variable by which a test finds the processes that it has started,
// directly or not.
const mark = "CONFINE_TEST_MARK"

// command is a helper, with the mark of this process.
func command(mode string, args ...string) confine.Command {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return confine.Command{
		Path: self, Args: append([]string{"helper", mode}, args...),
		Env:    confine.Environ(map[string]string{mark: os.Getenv(mark), "GORACE": "atexit_sleep_ms=0"}, os.LookupEnv),
		Stderr: os.Stderr,
	}
}

// marked returns the processes that carry the mark, this one excepted.
func marked(mark string) (pids []int) {
	for _, pid := range processes() {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if pid != os.Getpid() && strings.Contains(string(env), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// supervises reports whether the process is a supervisor (and no zombie: those
// have no command line).
func supervises(pid int) bool {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.HasPrefix(string(line), "wasmgate-child\x00")
}

// children returns the children of this process, zombies too.
func children() (pids []int) {
	for _, pid := range processes() {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func processes() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// begin starts cmd for the time of the test.
func begin(t *testing.T, cmd confine.Command) (*confine.Child, *bufio.Reader) {
	t.Helper()
	c, err := confine.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(0) })
	return c, bufio.NewReader(c.Stdout())
}

// beginGateway starts a process that is a gateway with one child.
func beginGateway(t *testing.T, m, kind string, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	stdin, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	gw := exec.Command(command("").Path, append([]string{kind, "gateway"}, args...)...)
	gw.Env = append(os.Environ(), mark+"="+m)
	gw.Stdin, gw.Stderr = stdin, os.Stderr
	out, err := gw.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(); err != nil {
		t.Fatal(err)
	}
	gw.Stdin = hold
	t.Cleanup(func() {
		hold.Close()
		gw.Process.Kill()
		gw.Wait()
	})
	return gw, bufio.NewReader(out)
}

func decode(t *testing.T, cmd confine.Command, v any) {
	t.Helper()
	_, out := begin(t, cmd)
	if err := json.NewDecoder(out).Decode(v); err != nil {
		t.Fatal(err)
	}
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	s, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("read line: %q, %v", s, err)
	}
	return strings.TrimSuffix(s, "\n")
}

// pids reads what a helper says of itself.
func pids(t *testing.T, line string) (pid, parent int) {
	t.Helper()
	if _, err := fmt.Sscan(line, &pid, &parent); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return pid, parent
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
