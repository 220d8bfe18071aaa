//go:build amd64 || arm64

package confine_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// hostile builds the program of testdata/hostile, once.
var hostile = sync.OnceValues(func() (string, error) {
	var err error
	if builds, err = os.MkdirTemp("", "hostile-*"); err != nil {
		return "", err
	}
	file := filepath.Join(builds, "hostile")
	build := exec.Command("go", "build", "-o", file, "./testdata/hostile")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, nil
})

// needs skips the test where the kernel lacks what rules ask for.
func needs(t *testing.T, r confine.Rules) {
	t.Helper()
	if missing := confine.Missing(r); len(missing) > 0 {
		t.Skip("this kernel cannot enforce: ", strings.Join(missing, "; "))
	}
}

// attack runs an attack under rules, without one of the guards, and returns what
// became of it.
func attack(t *testing.T, r confine.Rules, without string, args ...string) string {
	t.Helper()
	program, err := hostile()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := confine.Command{
		Path: program, Args: args, Dir: "/", Confine: &r,
		Env: confine.Environ(map[string]string{"GOMAXPROCS": "2"}, os.LookupEnv), Stderr: &stderr,
	}
	c, out := begin(t, cmd.Without(without))
	said, err := out.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err != nil {
		t.Logf("%q without %q said nothing: %v: %s", args, without, c.Wait(), stderr.String())
	}
	return strings.TrimSpace(said)
}

// scene is what there is around a confined child.
type scene struct {
	home, secret, open, work string // folders and files; work may be written
	victim                   string
	port, other              int    // of listeners; only port may be connected to
	socket, datagrams        string // Unix domain sockets
	neighbour                *exec.Cmd
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{home: t.TempDir(), work: t.TempDir()}
	ssh := filepath.Join(s.home, ".ssh")
	s.secret, s.open = filepath.Join(ssh, "id"), filepath.Join(s.work, "notes")
	for _, err := range []error{os.Mkdir(ssh, 0o700), os.WriteFile(s.open, []byte("x"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.victim = filepath.Join(s.home, "victim")
	restore(t, s)
	s.socket, s.datagrams = filepath.Join(s.home, "s"), filepath.Join(s.home, "d")
	s.port, s.other = listener(t, "tcp", "127.0.0.1:0"), listener(t, "tcp", "127.0.0.1:0")
	listener(t, "unix", s.socket)
	d, err := net.ListenPacket("unixgram", s.datagrams)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	s.neighbour = exec.Command("sleep", "600")
	if err := s.neighbour.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.neighbour.Process.Kill()
		s.neighbour.Wait()
	})
	return s
}

func listener(t *testing.T, network, address string) (port int) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

func (s *scene) rules() confine.Rules {
	return confine.Rules{Write: []string{s.work}, Connect: []uint16{uint16(s.port)}, Processes: 8, Memory: 256 << 20, Files: 64, CPU: time.Minute}
}

func TestAHostileServerDoesNotGetOut(t *testing.T) {
	s := newScene(t)
	needs(t, s.rules())
	us, neighbour := strconv.Itoa(os.Getpid()), strconv.Itoa(s.neighbour.Process.Pid)
	other, call := strconv.Itoa(s.other), func(nr int) []string { return []string{"call", strconv.Itoa(nr)} }
	outside := filepath.Join(s.home, "new")
	const denied, forbidden = "permission denied", "operation not permitted"
	tests := map[string]struct {
		attack []string
		want   string // of what the attack says
		guard  string // without it, the attack works
	}{
		"read a key":                           {[]string{"read", s.secret}, denied, "files"},
		"read a key, by a child":               {[]string{"child", "read", s.secret}, denied, "files"},
		"list the folder of keys":              {[]string{"list", filepath.Dir(s.secret)}, denied, "files"},
		"write outside":                        {[]string{"create", outside}, denied, "files"},
		"append to a file outside":             {[]string{"append", s.secret}, denied, "files"},
		"truncate a file outside":              {[]string{"truncate", s.secret}, denied, "files"},
		"remove a file outside":                {[]string{"remove", s.victim}, denied, "files"},
		"link a key to where it may read":      {[]string{"link", s.secret, s.work}, "cross-device", "files"},
		"point a symbolic link at a key":       {[]string{"symlink", s.secret, s.work}, denied, "files"},
		"read a key by the root in /proc":      {[]string{"read", "/proc/self/root" + s.secret}, denied, "files"},
		"read a key by a descriptor":           {[]string{"reopen", s.secret}, denied, "files"},
		"read the gateway's environment":       {[]string{"read", "/proc/" + us + "/environ"}, denied, ""},
		"read the gateway's command line":      {[]string{"read", "/proc/" + us + "/cmdline"}, denied, "files"},
		"read a key by the gateway's root":     {[]string{"read", "/proc/" + us + "/root" + s.secret}, denied, ""},
		"execute what it has put there":        {[]string{"execute", s.secret}, denied, "files"},
		"make a device":                        {[]string{"device", filepath.Join(s.work, "null")}, denied, ""},
		"connect to another port":              {[]string{"tcp", other}, denied, "network"},
		"connect to another port, by a child":  {[]string{"child", "tcp", other}, denied, "network"},
		"bind a port":                          {[]string{"bind", "0"}, forbidden, ""},
		"connect with Fast Open":               {[]string{"fastopen", other}, forbidden, "sockets"},
		"connect with multipath TCP":           {[]string{"mptcp", other}, forbidden, "sockets"},
		"send UDP":                             {[]string{"udp", "53"}, forbidden, "sockets"},
		"send raw packets":                     {[]string{"raw", "0"}, forbidden, ""},
		"send frames":                          {[]string{"packet", "0"}, forbidden, ""},
		"connect to a Unix domain socket":      {[]string{"unix", s.socket}, forbidden, "sockets"},
		"send to one by a pair":                {[]string{"unixpair", s.datagrams}, forbidden, "sockets"},
		"make TCP another protocol":            {[]string{"ulp"}, forbidden, "sockets"},
		"listen":                               {[]string{"listen"}, forbidden, "calls"},
		"take a name by a pair":                {[]string{"bindpair"}, forbidden, "sockets"},
		"keep writers waiting":                 {[]string{"lease", s.open}, forbidden, "calls"},
		"be told of changes":                   {[]string{"watch", s.work}, forbidden, "calls"},
		"change flags of a file":               {[]string{"flags", s.open}, "inappropriate ioctl", "calls"},
		"label a file":                         {[]string{"label", s.open}, "inappropriate ioctl", "calls"},
		"make a file unchangeable":             {[]string{"verity", s.open}, "inappropriate ioctl", ""},
		"read the machine's connections":       {[]string{"read", "/proc/self/net/tcp"}, denied, "files"},
		"read the machine's sockets":           {[]string{"read", "/proc/thread-self/net/unix"}, denied, "files"},
		"read what is mounted":                 {[]string{"read", "/proc/self/mountinfo"}, denied, "files"},
		"signal the gateway":                   {[]string{"signal", us, "0"}, forbidden, "signals"},
		"kill a neighbour":                     {[]string{"signal", neighbour, "0"}, forbidden, "signals"},
		"kill a neighbour, by a child":         {[]string{"child", "signal", neighbour, "0"}, forbidden, "signals"},
		"kill a thread of a neighbour":         {[]string{"tgkill", neighbour}, forbidden, "signals"},
		"have the kernel signal a neighbour":   {[]string{"owner", neighbour}, forbidden, "calls"},
		"signal the supervisor":                {[]string{"parent"}, forbidden, "signals"},
		"set limits of a neighbour":            {[]string{"limits", neighbour}, forbidden, "calls"},
		"slow a neighbour down":                {[]string{"renice", neighbour}, forbidden, ifRoot("", "calls")},
		"move a neighbour to another CPU":      {[]string{"idle", neighbour}, forbidden, ifRoot("", "calls")},
		"read a neighbour's memory":            {[]string{"memory of", neighbour}, forbidden, ""},
		"be traced":                            {[]string{"trace"}, forbidden, "calls"},
		"trace":                                {call(unix.SYS_PTRACE), forbidden, "calls"},
		"make a namespace":                     {call(unix.SYS_UNSHARE), forbidden, "calls"},
		"make a child in a namespace":          {[]string{"namespace of a child"}, forbidden, "calls"},
		"make a child by clone3":               {[]string{"clone3"}, "function not implemented", ""},
		"use a call that nobody has looked at": {[]string{"newest"}, "function not implemented", ""},
		"enter a namespace":                    {call(unix.SYS_SETNS), forbidden, "calls"},
		"mount":                                {call(unix.SYS_MOUNT), forbidden, ""},
		"use io_uring":                         {call(unix.SYS_IO_URING_ENTER), forbidden, "calls"},
		"load a BPF program":                   {call(unix.SYS_BPF), forbidden, "calls"},
		"watch performance events":             {call(unix.SYS_PERF_EVENT_OPEN), forbidden, "calls"},
		"use keys":                             {call(unix.SYS_KEYCTL), forbidden, "calls"},
		"make files of memory":                 {call(unix.SYS_MEMFD_CREATE), forbidden, "calls"},
		"attach shared memory":                 {call(unix.SYS_SHMAT), forbidden, "calls"},
		"type into a terminal":                 {[]string{"type"}, forbidden, "calls"},
		"have capabilities":                    {[]string{"capabilities"}, "has none", ifRoot("capabilities", "")},
		"gain privileges":                      {[]string{"privileges"}, "has none", ""},
		"make a bomb of processes":             {[]string{"processes", "20"}, "after 7: fork", "processes"},
		"make a bomb of threads":               {[]string{"threads", "400"}, "exit status 2", "processes"},
		"hold more memory in one process":      {[]string{"hold", "512"}, "cannot allocate memory", ""},
		"open files without end":               {[]string{"descriptors", "100"}, "too many open files", "fds"},
	}
	t.Logf("%d attacks", len(tests))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := attack(t, s.rules(), "", tt.attack...); !strings.Contains(got, tt.want) {
				t.Errorf("confined: %q, want %q", got, tt.want)
			}
			if tt.guard == "" || unraced.AtWork() {
				return
			}
			clean(s)
			if got := attack(t, s.rules(), tt.guard, tt.attack...); got != "done" {
				t.Errorf("without the guard %s: %q; the attack shows nothing", tt.guard, got)
			}
			restore(t, s)
		})
	}
	if err := s.neighbour.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the neighbour: %v", err)
	}
}

// ifRoot chooses between two guards: only root has capabilities to lose, and
// a process without them does not get at one of root's.
func ifRoot(yes, no string) string {
	if os.Geteuid() == 0 {
		return yes
	}
	return no
}

// clean removes what an attack left before it failed; restore what it harmed.
func clean(s *scene) {
	for _, name := range []string{"hard", "soft"} {
		os.Remove(filepath.Join(s.work, name))
	}
}

func restore(t *testing.T, s *scene) {
	t.Helper()
	clean(s)
	os.Remove(filepath.Join(s.home, "new"))
	for _, file := range []string{s.secret, s.victim} {
		if err := os.WriteFile(file, []byte("#!/bin/true\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// Landlock refuses these as well, and so does the rest of the kernel; the filter
// shows by what it answers to nonsense.
func TestTheFilterRefusesAllThatItLists(t *testing.T) {
	unraced.Long(t)
	needs(t, confine.Rules{})
	for _, nr := range confine.Refused() {
		if got := attack(t, confine.Rules{}, "", "call", strconv.Itoa(int(nr))); got != "operation not permitted" {
			t.Errorf("call %d: %q", nr, got)
		}
	}
}

func TestAConfinedServerMayDoWhatItsRulesSay(t *testing.T) {
	s := newScene(t)
	needs(t, s.rules())
	reads := s.rules()
	reads.Read = []string{filepath.Dir(s.secret)}
	runs := s.rules()
	runs.Execute = []string{s.secret}
	tests := map[string]struct {
		rules  confine.Rules
		attack []string
	}{
		"read what it may write":     {s.rules(), []string{"read", s.open}},
		"read a folder":              {reads, []string{"read", s.secret}},
		"write in a folder":          {s.rules(), []string{"create", filepath.Join(s.work, "new")}},
		"execute a file":             {runs, []string{"execute", s.secret}},
		"connect to a port":          {s.rules(), []string{"tcp", strconv.Itoa(s.port)}},
		"signal its own":             {s.rules(), []string{"own"}},
		"have some processes":        {s.rules(), []string{"processes", "6"}},
		"have some memory":           {s.rules(), []string{"hold", "64"}},
		"read about itself":          {s.rules(), []string{"read", "/proc/self/status"}},
		"lock a file":                {s.rules(), []string{"lock", s.open}},
		"ask for addresses":          {s.rules(), []string{"addresses"}},
		"read its certificates' way": {s.rules(), []string{"read", "/etc/hosts"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if name == "have some memory" {
				unraced.Long(t)
			}
			for _, without := range []string{"", "scopes", "listeners"} {
				if without != "" && unraced.AtWork() {
					return
				}
				if got := attack(t, tt.rules, without, tt.attack...); got != "done" {
					t.Errorf("%q (without %q)", got, without)
				}
			}
		})
	}
}

func TestSignalsAreJudgedWhereLandlockDoesNot(t *testing.T) {
	unraced.Long(t)
	s := newScene(t)
	needs(t, s.rules())
	us, neighbour := strconv.Itoa(os.Getpid()), strconv.Itoa(s.neighbour.Process.Pid)
	for name, args := range map[string][]string{
		"the gateway": {"signal", us, "0"}, "a neighbour": {"signal", neighbour, "9"}, "a neighbour, by a child": {"child", "signal", neighbour, "9"},
		"a thread": {"tgkill", neighbour}, "everybody": {"everybody"}, "another group": {"signal", "-" + strconv.Itoa(syscall.Getpgrp()), "0"},
		"the supervisor": {"parent"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := attack(t, s.rules(), "scopes", args...); got != "operation not permitted" {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestWhatNoCallAsksForIsBoundedToo(t *testing.T) {
	unraced.Long(t)
	s := newScene(t)
	needs(t, s.rules())
	brief := s.rules()
	brief.CPU = time.Second
	tests := map[string]struct {
		rules  confine.Rules
		attack []string
		guard  string
	}{
		"memory that is shared":  {s.rules(), []string{"share", "512"}, "tree"},
		"memory of children":     {s.rules(), []string{"children hold", "3", "128"}, "tree"},
		"time on the processors": {brief, []string{"compute"}, "cpu"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := attack(t, tt.rules, "", tt.attack...); got != "" {
				t.Errorf("confined: %q; it should have been ended", got)
			}
			if got := attack(t, tt.rules, tt.guard, tt.attack...); got != "done" {
				t.Errorf("without the guard %s: %q", tt.guard, got)
			}
		})
	}
}

func TestTheTemporaryFolderComesAndGoes(t *testing.T) {
	needs(t, confine.Rules{})
	for name, end := range map[string]func(*confine.Child){
		"the child is closed": func(c *confine.Child) { c.Close(0) },
		"the child ends":      func(c *confine.Child) { c.Stdin().Close() },
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command("")
			cmd.Path, cmd.Args, cmd.Confine, cmd.Dir = "sh", []string{"-c", `echo x >"$TMPDIR/made" && echo "$TMPDIR" && ls -ld "$TMPDIR" && read end`}, &confine.Rules{}, "/"
			c, out := begin(t, cmd)
			dir := line(t, out)
			if mode := line(t, out); !strings.HasPrefix(mode, "drwx------ ") {
				t.Errorf("mode %q", mode)
			}
			if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
				t.Fatal(err)
			}
			end(c)
			c.Wait()
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left: %v", dir, err)
			}
		})
	}
}

func TestRulesThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "none")
	tests := map[string]struct {
		rules confine.Rules
		want  string
	}{
		"a path that is not there":  {confine.Rules{Read: []string{file}}, "confine.read: stat " + file + ": no such file or directory; create it or leave it out"},
		"a relative path":           {confine.Rules{Write: []string{"x"}}, `confine.write: "x" is not an absolute path`},
		"hardly any memory":         {confine.Rules{Memory: 1}, "memory of 1 bytes"},
		"a negative number":         {confine.Rules{Processes: -1}, "-1 processes"},
		"fewer files than it takes": {confine.Rules{Files: 3}, "3 files"},
		"part of a second":          {confine.Rules{CPU: time.Millisecond}, "must be a whole number of seconds"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := command("echo")
			cmd.Confine = &tt.rules
			c, err := confine.Start(t.Context(), cmd)
			if err == nil {
				c.Close(0)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Start = %v, want %q", err, tt.want)
			}
		})
	}
}

// A program that does not call Main has no supervisor to confine its children.
func TestAProgramThatCannotConfineSaysSo(t *testing.T) {
	tests := map[string]struct{ mode, want string }{
		"and starts nothing":               {"confine", "confine cannot be enforced on this system: everything: this program does not call confine.Main"},
		"and starts it if that is allowed": {"confine anyway", "started"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command(command("").Path, "plain", tt.mode).Output()
			if err != nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
}

func TestLearnTellsWhatIsUsed(t *testing.T) {
	s := newScene(t)
	tests := map[string]struct {
		attack []string
		want   confine.Access
	}{
		"a file that is read":         {[]string{"read", s.secret}, confine.Access{Kind: confine.AccessRead, Path: s.secret}},
		"by a descendant":             {[]string{"child", "read", s.secret}, confine.Access{Kind: confine.AccessRead, Path: s.secret}},
		"a folder that is listed":     {[]string{"list", s.home}, confine.Access{Kind: confine.AccessRead, Path: s.home, Folder: true}},
		"a file that is made":         {[]string{"create", filepath.Join(s.work, "new")}, confine.Access{Kind: confine.AccessWrite, Path: s.work, Folder: true}},
		"a file that is truncated":    {[]string{"truncate", s.open}, confine.Access{Kind: confine.AccessWrite, Path: s.open}},
		"a link is what it points to": {[]string{"symlink", s.secret, s.work}, confine.Access{Kind: confine.AccessRead, Path: s.secret}},
		"a program":                   {[]string{"execute", s.secret}, confine.Access{Kind: confine.AccessExecute, Path: s.secret}},
		"a port":                      {[]string{"tcp", strconv.Itoa(s.other)}, confine.Access{Kind: confine.AccessConnect, Port: uint16(s.other)}},
		"a Unix domain socket":        {[]string{"unix", s.socket}, confine.Access{Kind: confine.AccessSocket, Path: strconv.Quote(s.socket)}},
	}
	tests["a socket's name ends at its end"] = struct {
		attack []string
		want   confine.Access
	}{[]string{"unixdirty", s.socket}, tests["a Unix domain socket"].want}
	program, err := hostile()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []confine.Access
			cmd := confine.Command{
				Path: program, Args: tt.attack, Dir: "/", Env: confine.Environ(nil, os.LookupEnv),
				Learn: func(a confine.Access) { got = append(got, a) },
			}
			c, out := begin(t, cmd)
			if said := line(t, out); said != "done" {
				t.Fatalf("%q: what is learnt from must not be confined", said)
			}
			c.Close(patience)
			if !slices.Contains(got, tt.want) {
				t.Errorf("told of %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestNamesAreAskedForOverTCP(t *testing.T) {
	r := confine.Rules{DNS: true}
	needs(t, r)
	if got := attack(t, r, "", "environment", "RES_OPTIONS", "use-vc"); got != "done" {
		t.Errorf("RES_OPTIONS = %q", got)
	}
	if got := attack(t, r, "", "tcp", "53"); got != "done" && got != "connection refused" {
		t.Errorf("TCP port 53: %q", got)
	}
	if got := attack(t, r, "", "udp", "53"); got != "operation not permitted" {
		t.Errorf("UDP port 53: %q", got)
	}
	if got := attack(t, confine.Rules{}, "", "tcp", "53"); got != "operation not permitted" {
		t.Errorf("TCP without any port: %q", got)
	}
}

func TestWhatAKernelLacksIsNamed(t *testing.T) {
	ports := confine.Rules{Connect: []uint16{443}}
	tests := map[string]struct {
		rules     confine.Rules
		abi       int
		listeners bool
		want      []string
	}{
		"nothing":                        {ports, 6, true, nil},
		"signals, which have a stand-in": {ports, 5, true, nil},
		"ports that nobody asks for":     {confine.Rules{}, 3, true, nil},
		"ports":                          {ports, 3, true, []string{"which ports are connected to (Landlock 4, since Linux 6.7; this kernel has 3)"}},
		"names":                          {confine.Rules{DNS: true}, 3, true, []string{"which ports are connected to (Landlock 4, since Linux 6.7; this kernel has 3)"}},
		"everything": {confine.Rules{}, 0, false, []string{
			"files (Landlock 3, since Linux 6.2; this kernel has 0)", "system calls and the number of processes (seccomp with listeners, since Linux 5.5)",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, confine.Lacking(tt.rules, tt.abi, tt.listeners)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAConfinedChildHoldsThreeDescriptors(t *testing.T) {
	needs(t, confine.Rules{})
	cmd := command("")
	cmd.Path, cmd.Args, cmd.Dir, cmd.Confine = "sh", []string{"-c", "exec ls /proc/self/fd"}, "/", &confine.Rules{} // ls holds 3, the directory
	_, out := begin(t, cmd)
	if got, _ := io.ReadAll(out); string(got) != "0\n1\n2\n3\n" {
		t.Errorf("descriptors = %q", got)
	}
}

func TestAStrangerCannotRunALauncher(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var stderr bytes.Buffer
	cmd := exec.Cmd{Path: "/proc/self/exe", Args: []string{"wasmgate-launcher"}, Stderr: &stderr, ExtraFiles: []*os.File{null}}
	err = cmd.Run()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(stderr.String(), "only a gateway starts this program") {
		t.Errorf("ended with %v and %q", err, &stderr)
	}
}

// The bomb forks wherever it can, and ends only with its last process.
func TestABombIsBounded(t *testing.T) {
	unraced.Long(t)
	r := confine.Rules{Processes: 16}
	needs(t, r)
	m := t.Name() + strconv.Itoa(os.Getpid())
	t.Setenv(mark, m)
	cmd := command("")
	cmd.Path, cmd.Args, cmd.Dir, cmd.Confine, cmd.Stderr = "sh", []string{"-c", `bomb() { bomb | bomb & }; echo lit; bomb; sleep 60`}, "/", &r, nil
	c, out := begin(t, cmd)
	line(t, out)
	most := 0
	for range 100 {
		most = max(most, len(marked(m)))
		<-time.After(10 * time.Millisecond)
	}
	if most < 2 || most > 2*r.Processes { // while one looks at them some end, and others begin
		t.Errorf("%d processes, of %d", most, r.Processes)
	}
	if err := c.Close(0); err != nil {
		t.Error(err)
	}
	if left := marked(m); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestFilter(t *testing.T) {
	const x32 = 0x40000000
	errno := func(e syscall.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	none, ports := confine.Rules{}, confine.Rules{Connect: []uint16{443}}
	tests := map[string]struct {
		rules confine.Rules
		arch  uint32
		nr    uint32
		args  [6]uint64
		want  uint32
	}{
		"an ordinary call":              {none, confine.AuditArch, unix.SYS_READ, [6]uint64{}, unix.SECCOMP_RET_ALLOW},
		"another architecture":          {none, unix.AUDIT_ARCH_I386, unix.SYS_READ, [6]uint64{}, unix.SECCOMP_RET_KILL_PROCESS},
		"an unknown architecture":       {none, 0, unix.SYS_READ, [6]uint64{}, unix.SECCOMP_RET_KILL_PROCESS},
		"x32":                           {none, confine.AuditArch, x32 | unix.SYS_READ, [6]uint64{}, errno(unix.ENOSYS)},
		"a number yet to come":          {none, confine.AuditArch, 5000, [6]uint64{}, errno(unix.ENOSYS)},
		"a thread":                      {none, confine.AuditArch, unix.SYS_CLONE, [6]uint64{unix.CLONE_VM | unix.CLONE_THREAD}, unix.SECCOMP_RET_USER_NOTIF},
		"a namespace":                   {none, confine.AuditArch, unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWNET}, errno(unix.EPERM)},
		"TCP without ports":             {none, confine.AuditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_STREAM}, errno(unix.EPERM)},
		"TCP":                           {ports, confine.AuditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, unix.IPPROTO_TCP}, unix.SECCOMP_RET_ALLOW},
		"TCP over IPv6":                 {ports, confine.AuditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET6, unix.SOCK_STREAM | unix.SOCK_NONBLOCK}, unix.SECCOMP_RET_ALLOW},
		"multipath TCP":                 {ports, confine.AuditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, errno(unix.EPERM)},
		"SCTP":                          {ports, confine.AuditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, errno(unix.EPERM)},
		"UDP":                           {ports, confine.AuditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_DGRAM}, errno(unix.EPERM)},
		"raw packets":                   {ports, confine.AuditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_RAW}, errno(unix.EPERM)},
		"a Unix domain socket":          {ports, confine.AuditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, errno(unix.EPERM)},
		"virtual machines":              {ports, confine.AuditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, errno(unix.EPERM)},
		"the machine's addresses":       {ports, confine.AuditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, unix.SECCOMP_RET_ALLOW},
		"another subsystem":             {ports, confine.AuditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT}, errno(unix.EPERM)},
		"a pair of streams":             {none, confine.AuditArch, unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, unix.SECCOMP_RET_ALLOW},
		"a pair of datagram sockets":    {none, confine.AuditArch, unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, errno(unix.EPERM)},
		"sending":                       {ports, confine.AuditArch, unix.SYS_SENDTO, [6]uint64{0, 0, 0, unix.MSG_NOSIGNAL}, unix.SECCOMP_RET_ALLOW},
		"sending to connect":            {ports, confine.AuditArch, unix.SYS_SENDTO, [6]uint64{0, 0, 0, unix.MSG_FASTOPEN | unix.MSG_NOSIGNAL}, errno(unix.EPERM)},
		"a message to connect":          {ports, confine.AuditArch, unix.SYS_SENDMSG, [6]uint64{0, 0, unix.MSG_FASTOPEN}, errno(unix.EPERM)},
		"messages to connect":           {ports, confine.AuditArch, unix.SYS_SENDMMSG, [6]uint64{0, 0, 0, unix.MSG_FASTOPEN}, errno(unix.EPERM)},
		"its own priority":              {none, confine.AuditArch, unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_PROCESS, 0}, unix.SECCOMP_RET_ALLOW},
		"the priority of another":       {none, confine.AuditArch, unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_PROCESS, 1}, errno(unix.EPERM)},
		"the priority of its user":      {none, confine.AuditArch, unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_USER, 0}, errno(unix.EPERM)},
		"the disk priority of its user": {none, confine.AuditArch, unix.SYS_IOPRIO_SET, [6]uint64{3, 0}, errno(unix.EPERM)},
		"its own limits":                {none, confine.AuditArch, unix.SYS_PRLIMIT64, [6]uint64{0, unix.RLIMIT_CORE}, unix.SECCOMP_RET_ALLOW},
		"an ordinary ioctl":             {none, confine.AuditArch, unix.SYS_IOCTL, [6]uint64{0, unix.TCGETS}, unix.SECCOMP_RET_ALLOW},
		"typing, with a dirty register": {none, confine.AuditArch, unix.SYS_IOCTL, [6]uint64{0, 1<<32 | unix.TIOCSTI}, errno(unix.EPERM)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := judged(t, confine.Filter(tt.rules), tt.arch, tt.nr, tt.args); got != tt.want {
				t.Errorf("%#x, want %#x", got, tt.want)
			}
		})
	}
}

// judged runs a filter as the kernel does (Documentation/networking/filter.rst).
func judged(t *testing.T, filter []unix.SockFilter, arch, nr uint32, args [6]uint64) uint32 {
	t.Helper()
	data := map[uint32]uint32{0: nr, 4: arch}
	for i, a := range args {
		data[uint32(16+8*i)] = uint32(a)
	}
	var acc uint32
	for pc := 0; ; pc++ {
		in := filter[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			v, ok := data[in.K]
			if !ok {
				t.Fatalf("%d: no field at %d", pc, in.K)
			}
			acc = v
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(acc == in.K)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump(acc > in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(acc&in.K != 0)
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("%d: unknown instruction %#x", pc, in.Code)
		}
	}
}

func TestAServerThatCannotBeExecutedIsReported(t *testing.T) {
	needs(t, confine.Rules{})
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte("#!/nonexistent/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := confine.Start(t.Context(), confine.Command{Path: file, Confine: &confine.Rules{}})
	if err == nil {
		c.Close(0)
	}
	if !errors.Is(err, syscall.ENOENT) || !strings.Contains(err.Error(), "the interpreter that it names") {
		t.Errorf("Start = %v", err)
	}
	if left := children(); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

// TestNoNameIsTaken: without ports to reach no socket gets a name, not even the end of a
// pair; with them options of TCP are set as before.
func TestNoNameIsTaken(t *testing.T) {
	s := newScene(t)
	rules := s.rules()
	needs(t, rules)
	if got := attack(t, rules, "", "nodelay"); got != "done" {
		t.Errorf("an option of TCP: %q", got)
	}
	rules.Connect = nil
	if got := attack(t, rules, "", "bindpair"); !strings.Contains(got, "operation not permitted") {
		t.Errorf("an abstract name: %q", got)
	}
	if got := attack(t, rules, "sockets", "bindpair"); got != "done" {
		t.Errorf("without the guard: %q; the attack shows nothing", got)
	}
}
