package lock

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxTree bounds the lockfile of npm that is read, in bytes; large projects have
// some 2 MB.
const maxTree = 32 << 20

var (
	// npmExact and pypiExact match versions that stand for one package for good
	// (Semantic Versioning 2.0.0; PEP 440).
	npmExact  = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.-]+)*$`)
	pypiExact = regexp.MustCompile(`^v?[0-9]+(\.[0-9]+)*([._+-]?[0-9A-Za-z]+)*$`)
	// npmSpec matches a package of a registry, with its version or range.
	npmSpec = regexp.MustCompile(`^(@[a-z0-9~._-]+/[a-z0-9~._-]+|[a-z0-9~_-][a-z0-9~._-]*)(?:@(.*))?$`)
	pypi    = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?(?:(?:==|@)(.*))?$`)
)

// npm adds to an identity what npx runs. The lockfile that npm writes says what was installed: the
// integrity of each package, as the registry signed it. Changes of files after their installation are
// not detected.
func (p Program) npm(id map[string]any) (notes []string) {
	specs := packages(p.Started, npxValues, "-p", "--package")
	id["packages"] = nonNil(specs)
	for _, spec := range specs {
		if m := npmSpec.FindStringSubmatch(spec); m == nil || !npmExact.MatchString(m[2]) {
			notes = append(notes, unpinnedVersion(spec, name(npmSpec, spec)+"@VERSION"))
		}
	}
	tree, err := p.npmTree(specs)
	if err != nil {
		return append(notes, fmt.Sprintf("what npx runs is not pinned beyond the name and version of the package: %v", err))
	}
	id["tree"] = tree
	return notes
}

// Unpinned returns the packages of a registry that a command has npx run, as its arguments name them, whose version is
// not fixed.
func Unpinned(command string, args []string) (specs []string) {
	if runner(command) != "npx" {
		return nil
	}
	for _, spec := range packages(args, npxValues, "-p", "--package") {
		if m := npmSpec.FindStringSubmatch(spec); m != nil && !npmExact.MatchString(m[2]) {
			specs = append(specs, spec)
		}
	}
	return specs
}

func unpinnedVersion(spec, better string) string {
	return fmt.Sprintf("the version of %s is not pinned: a version that is published later can run; write %s", spec, better)
}

// name returns the package of a specification without its version.
func name(pattern *regexp.Regexp, spec string) string {
	if m := pattern.FindStringSubmatch(spec); m != nil {
		return m[1]
	}
	return spec
}

// npxValues are the options of npx that are followed by a value.
var npxValues = []string{"-p", "--package", "-c", "--call", "-w", "--workspace", "--registry", "--cache", "--prefix", "--userconfig", "--loglevel"}

// packages returns the packages that the arguments of npx or uvx name: those of
// the given options, or else the first argument that is no option.
func packages(args, withValue []string, options ...string) (specs []string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		name, value, joined := strings.Cut(a, "=")
		switch {
		case a == "--":
			if len(specs) == 0 && i+1 < len(args) {
				specs = append(specs, args[i+1])
			}
			return specs
		case !strings.HasPrefix(a, "-"):
			if len(specs) == 0 {
				specs = append(specs, a)
			}
			return specs
		case slices.Contains(options, name) && joined:
			specs = append(specs, value)
		case slices.Contains(options, a) && i+1 < len(args):
			specs = append(specs, args[i+1])
			i++
		case slices.Contains(withValue, a):
			i++
		}
	}
	return specs
}

// npmTree returns the versions and integrities of all that npx has installed for
// the packages, by their place: in the project that it is started in if that has
// the package, and otherwise in npx's own cache.
func (p Program) npmTree(specs []string) (map[string]string, error) {
	if len(specs) == 1 {
		if m := npmSpec.FindStringSubmatch(specs[0]); m != nil {
			if project := p.project(m[1]); project != "" {
				return readTree(filepath.Join(project, "node_modules", ".package-lock.json"))
			}
		}
	}
	cache := p.npmCache()
	if cache == "" || len(specs) == 0 {
		return nil, fmt.Errorf("the cache folder of npm cannot be found")
	}
	// npx keeps what it installs for a set of packages in a folder named by a hash
	// of their names (libnpmexec).
	sum := sha512.Sum512([]byte(strings.Join(slices.Sorted(slices.Values(specs)), "\n")))
	dir := filepath.Join(cache, "_npx", hex.EncodeToString(sum[:])[:16])
	tree, err := readTree(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return readTree(filepath.Join(dir, "node_modules", ".package-lock.json"))
	}
	return tree, nil
}

// project returns the folder, of that which npx is started in and those above,
// whose modules have the package; "" if none has.
func (p Program) project(name string) string {
	dir := p.Dir
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", filepath.FromSlash(name), "package.json")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

func (p Program) npmCache() string {
	for _, name := range []string{"npm_config_cache", "NPM_CONFIG_CACHE"} {
		if dir := p.getenv(name); dir != "" {
			return dir
		}
	}
	if dir := p.getenv("LOCALAPPDATA"); dir != "" {
		return filepath.Join(dir, "npm-cache")
	}
	if home := p.getenv("HOME"); home != "" {
		return filepath.Join(home, ".npm")
	}
	return ""
}

// readTree reads a lockfile of npm (package-lock.json, lockfileVersion 2 and 3).
func readTree(path string) (map[string]string, error) {
	b, err := readWhole(path, maxTree)
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct{ Version, Resolved, Integrity string }
	}
	if err := json.Unmarshal(b, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	tree := make(map[string]string, len(lock.Packages))
	for place, one := range lock.Packages {
		if place == "" { // the project itself
			continue
		}
		if one.Integrity == "" { // from a folder or from git
			one.Integrity = one.Resolved
		}
		tree[place] = strings.TrimSpace(one.Version + " " + one.Integrity)
	}
	if len(tree) == 0 {
		return nil, fmt.Errorf("%s lists no packages", path)
	}
	return tree, nil
}

// uvxValues are the options of uvx that are followed by a value.
var uvxValues = []string{"--from", "--with", "-w", "--with-editable", "--with-requirements", "-p", "--python", "--index", "--default-index", "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--cache-dir", "--directory", "--project", "--config-file", "--env-file", "-c", "--constraints"}

// python adds to an identity what uvx runs. uv keeps environments under names that
// only it can compute, so that what is installed in them is not known here.
func (p Program) python(id map[string]any) (notes []string) {
	specs := packages(p.Started, uvxValues, "--from")
	id["packages"] = nonNil(specs)
	for _, spec := range specs {
		if m := pypi.FindStringSubmatch(spec); m == nil || !pypiExact.MatchString(m[2]) {
			notes = append(notes, unpinnedVersion(spec, name(pypi, spec)+"==VERSION"))
		}
	}
	return append(notes, "what uvx installs is not pinned beyond the name and version of the package")
}
