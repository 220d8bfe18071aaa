package confine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const onWindows = runtime.GOOS == "windows"

// inherited returns the names of the variables without which ordinary programs
// do not find their files, their language or their terminal.
func inherited() []string {
	if onWindows {
		return []string{
			"APPDATA", "ComSpec", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "OS", "PATH",
			"PATHEXT", "PROCESSOR_ARCHITECTURE", "ProgramData", "ProgramFiles", "ProgramFiles(x86)", "SystemDrive",
			"SystemRoot", "TEMP", "TMP", "USERNAME", "USERPROFILE", "windir",
		}
	}
	return []string{"HOME", "LANG", "PATH", "TERM", "TMPDIR", "USER"}
}

// Environ returns the minimal environment of a child, for [Command.Env]: PATH,
// HOME, USER, LANG, TMPDIR and TERM (on Windows SystemRoot, APPDATA and their
// like) as far as lookup knows them, and extra, which wins. Everything else
// that the gateway's environment holds, its secrets first, stays with it.
//
// lookup is os.LookupEnv in a program; nil finds nothing. The result is sorted.
func Environ(extra map[string]string, lookup func(string) (string, bool)) []string {
	var env []string
	for name, value := range extra {
		env = append(env, name+"="+value)
	}
	for _, name := range inherited() {
		if lookup == nil || slices.ContainsFunc(env, func(e string) bool { return names(e, name) }) {
			continue
		}
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	return env
}

// networked are the variables without which programs behind a company's proxy or
// certificate authority reach nothing; on Unix those of proxies have a name in either case.
var networked = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
}

// Network returns what a child that may use the network gets in addition to [Environ]: the
// variables of proxies and certificate authorities, as far as lookup knows them. An address with a
// password is left out, unless the operator names its variable.
func Network(lookup func(string) (string, bool)) map[string]string {
	found := map[string]string{}
	for _, name := range networked {
		if value, ok := lookup(name); ok && !hasPassword(value) {
			found[name] = value
		}
	}
	return found
}

// hasPassword reports whether an address has something before an @, with or without a
// scheme.
func hasPassword(address string) bool {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	authority, _, _ := strings.Cut(address, "/")
	return strings.Contains(authority, "@")
}

// names reports whether the environment entry sets the variable; on Windows
// names of variables have no case.
func names(entry, name string) bool {
	got, _, _ := strings.Cut(entry, "=")
	return got == name || onWindows && strings.EqualFold(got, name)
}

func getenv(env []string, name string) string {
	for _, e := range env {
		if names(e, name) {
			_, value, _ := strings.Cut(e, "=")
			return value
		}
	}
	return ""
}

func noNUL(what string, list []string) error {
	for i, s := range list {
		if strings.ContainsRune(s, 0) {
			return fmt.Errorf("%s %d contains a NUL byte", what, i)
		}
	}
	return nil
}

// A notFoundError reports that no folder of a child's PATH has the program.
type notFoundError string

func (e notFoundError) Error() string { return string(e) }

var errNotExecutable = fmt.Errorf("is not executable: %w", fs.ErrPermission)

// lookPath returns the absolute path of the program that name means to a child
// with the working directory dir and the environment env. (exec.LookPath asks
// the environment of this process.)
func lookPath(name, dir string, env []string) (string, error) {
	if name == "" {
		return "", errors.New("no command given")
	}
	suffixes := []string{""}
	if onWindows {
		suffixes = append(suffixes, filepath.SplitList(getenv(env, "PATHEXT"))...)
	}
	if filepath.Base(name) != name {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		file, err := program(name, suffixes)
		if words := args(name); words != "" && errors.Is(err, fs.ErrNotExist) {
			return "", notFoundError("there is no program " + name + words)
		}
		return file, err
	}
	path := getenv(env, "PATH")
	if path == "" {
		return "", notFoundError(name + " cannot be found, because its environment has no PATH: set PATH in its env, or use its absolute path")
	}
	var unusable error
	var unreadable []string
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			continue // a file in the working directory must not replace a program
		}
		file, err := program(filepath.Join(d, name), suffixes)
		switch {
		case err == nil:
			return file, nil
		case errors.Is(err, errNotExecutable):
			unusable = cmp.Or(unusable, err)
		case errors.Is(err, fs.ErrPermission):
			unreadable = append(unreadable, d)
		}
	}
	if unusable != nil {
		return "", unusable
	}
	where := "the PATH that wasmgate was started with"
	if path != os.Getenv("PATH") {
		where = "the PATH that its env sets"
	}
	switch n := len(unreadable); n {
	case 0:
	case 1:
		where += fmt.Sprintf(" (%s cannot be read)", unreadable[0])
	default:
		where += fmt.Sprintf(" (%d of its folders cannot be read, the first is %s)", n, unreadable[0])
	}
	if words := args(name); words != "" {
		return "", notFoundError("there is no program " + name + words)
	}
	return "", notFoundError(fmt.Sprintf("%s is not installed, or not in %s: install it, or use its absolute path", name, where))
}

// args says what to do about a command that was written with its arguments, and nothing of one without spaces.
func args(name string) string {
	if !strings.Contains(name, " ") {
		return ""
	}
	return ": write its arguments under args, one item each"
}

// program returns path with the first of suffixes that makes it the name of a
// file that this process may execute.
func program(path string, suffixes []string) (string, error) {
	for _, s := range suffixes {
		if onWindows && filepath.Ext(path+s) == "" {
			continue
		}
		if file, err := exec.LookPath(path + s); err == nil {
			return file, nil
		}
	}
	if info, err := os.Stat(path); err != nil {
		return "", err
	} else if info.IsDir() {
		return "", fmt.Errorf("%s is a directory", path)
	}
	return "", fmt.Errorf("%s %w", path, errNotExecutable)
}
