package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/wasmgate/wasmgate/sandbox/tools/tool"
)

const (
	maxRoots     = 16
	defaultDepth = 8
	maxDepth     = 32
	defaultLimit = 200
	maxLimit     = 1000 // repositories; with usual paths a quarter of the sandbox's bound on output
)

var repoScan = tool.Tool{
	Name:  "repo_scan",
	Title: "Repository scan",
	Description: "Finds the git repositories and worktrees under directories that are granted to this tool. " +
		"Symbolic links are not followed; folders whose name begins with a dot and node_modules are not searched, nor is what lies inside of a repository or worktree that was found (nested repositories, submodules): name such a directory as a root to search it. " +
		"Bare repositories are not reported. " +
		"Linked worktrees that a main repository names are listed wherever they lie: those in no granted directory with reachable unknown, because they cannot be looked at; others that are gone or no worktrees any more are left out. " +
		"A worktree leads neither to its main repository nor to that one's other worktrees. " +
		"Directories near the roots are searched first.",
	InputSchema: []byte(`{"type":"object","properties":{
		"roots":{"type":"array","minItems":1,"maxItems":16,"items":{"type":"string","minLength":1,"maxLength":1024},"description":"Absolute paths of the directories to search; all that are granted if it is left out."},
		"max_depth":{"type":"integer","minimum":0,"maximum":32,"default":8,"description":"How many levels of directories below a root are searched; 0 looks at the roots alone."},
		"limit":{"type":"integer","minimum":1,"maximum":1000,"default":200,"description":"Return at most this many repositories and worktrees."}},
		"additionalProperties":false}`),
	OutputSchema: []byte(`{"type":"object","properties":{
		"repositories":{"type":"array","description":"What was found, sorted by path, each path once.","items":{"type":"object","properties":{
			"path":{"type":"string","description":"The directory of the working tree."},
			"kind":{"type":"string","enum":["main","worktree","separate"],"description":"main has its git directory in .git; worktree is linked to a main repository; separate has its git directory elsewhere, like a submodule."},
			"reachable":{"type":"string","enum":["yes","unknown"],"description":"Whether the directory was seen; unknown if it lies in no granted directory, or can only be reached through a symbolic link or an unreadable directory."},
			"main":{"type":"string","description":"The repository that a worktree is linked to, as the worktree's files say."},
			"branch":{"type":"string","description":"The branch that is checked out; absent if HEAD is detached or in no granted directory."},
			"commit":{"type":"string","description":"The commit of a detached HEAD."}},
			"required":["path","kind","reachable"],"additionalProperties":false}},
		"errors":{"type":"array","description":"The roots that could not be searched. The others were.","items":{"type":"object","properties":{
			"root":{"type":"string"},
			"error":{"type":"string"}},
			"required":["root","error"],"additionalProperties":false}},
		"unreadable":{"type":"integer","minimum":0,"description":"How many directories below the roots could not be read."},
		"truncated":{"type":"boolean","description":"True if there may be more: max_depth, limit, or a bound of the tool on the directories and files of one call was reached."}},
		"required":["repositories","errors","unreadable","truncated"],"additionalProperties":false}`),
	Annotations: []byte(tool.ReadOnly),
	Run:         tool.Typed(runRepoScan),
}

type repoScanIn struct {
	Roots    []string `json:"roots"`
	MaxDepth *int     `json:"max_depth"`
	Limit    *int     `json:"limit"`
}

type repoScanOut struct {
	Repositories []repository `json:"repositories"`
	Errors       []rootError  `json:"errors"`
	Unreadable   int          `json:"unreadable"`
	Truncated    bool         `json:"truncated"`
}

type repository struct {
	Path      string `json:"path"`
	Kind      string `json:"kind"`
	Reachable string `json:"reachable"`
	Main      string `json:"main,omitempty"`
	head
}

type rootError struct {
	Root  string `json:"root"`
	Error string `json:"error"`
}

func runRepoScan(in repoScanIn) (repoScanOut, error) {
	depth, err := tool.Bounded("max_depth", in.MaxDepth, defaultDepth, 0, maxDepth)
	if err != nil {
		return repoScanOut{}, err
	}
	limit, err := tool.Bounded("limit", in.Limit, defaultLimit, 1, maxLimit)
	if err != nil {
		return repoScanOut{}, err
	}
	roots := granted()
	if in.Roots != nil {
		roots, err = cleanRoots(in.Roots)
	} else if len(roots) == 0 {
		err = errors.New("no directory is granted to this tool; the gateway's operator grants directories")
	}
	if err != nil {
		return repoScanOut{}, err
	}
	s := &scan{limit: limit, entered: map[string]bool{}, found: map[string]repository{}}
	out := repoScanOut{Repositories: []repository{}, Errors: []rootError{}}
	for _, root := range roots {
		if err := checkRoot(root); err != nil {
			out.Errors = append(out.Errors, rootError{root, err.Error()})
			continue
		}
		s.roots = append(s.roots, root)
	}
	s.within = slices.Concat(s.roots, granted())
	s.walk(depth)
	for _, r := range s.found {
		out.Repositories = append(out.Repositories, r)
	}
	slices.SortFunc(out.Repositories, func(a, b repository) int { return cmp.Compare(a.Path, b.Path) })
	out.Unreadable, out.Truncated = s.unreadable, s.truncated
	return out, nil
}

// cleanRoots returns the roots in order, each once.
func cleanRoots(roots []string) ([]string, error) {
	if len(roots) < 1 || len(roots) > maxRoots {
		return nil, fmt.Errorf("argument roots: %d directories are named; 1 to %d can be", len(roots), maxRoots)
	}
	clean := make([]string, len(roots))
	for i, root := range roots {
		if !filepath.IsAbs(root) || len(root) > maxPath || strings.ContainsRune(root, 0) {
			return nil, fmt.Errorf("argument roots: %.100q is no absolute path of at most %d bytes", root, maxPath)
		}
		clean[i] = filepath.Clean(root)
	}
	slices.Sort(clean)
	return slices.Compact(clean), nil
}

// checkRoot says in words for the caller why a root cannot be searched.
func checkRoot(root string) error {
	info, err := os.Lstat(root)
	if err == nil && info.IsDir() {
		_, _, err = readDirectories(root, 1)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("it does not exist")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("it may not be read")
	case errors.Is(err, syscall.EBADF): // Go on WASI returns it for a path under no granted directory
		return errors.New("it is not granted to this tool; the gateway's operator grants directories")
	case err != nil:
		return fmt.Errorf("it cannot be read: %w", bare(err))
	case info.Mode().Type() == fs.ModeSymlink:
		return errors.New("it is a symbolic link; name the directory that it leads to")
	case !info.IsDir():
		return errors.New("it is not a directory")
	}
	return nil
}

// bare takes operation and path off an error: the root is printed next to it.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
