// Program measure prints how hard the module is to hold in the head: the largest group of
// files of a package that all need one another, the largest packages, how many names other
// modules can import, and lines; of the checked out commit with what is changed in it, and
// beside it of another commit.
//
//	go run ./cmd/internal/arch/measure [COMMIT]
package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/wasmgate/wasmgate/cmd/internal/arch"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(commits []string) error {
	if len(commits) > 1 {
		return fmt.Errorf("usage: measure [COMMIT]")
	}
	now, err := arch.Measure(".")
	if err != nil {
		return err
	}
	show("HEAD", now)
	if len(commits) == 0 {
		return nil
	}
	then, err := measureCommit(commits[0])
	if err != nil {
		return err
	}
	fmt.Println()
	show(commits[0], then)
	return nil
}

// measureCommit measures a commit in a folder of its own.
func measureCommit(commit string) (h arch.House, err error) {
	dir, err := os.MkdirTemp("", "measure")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("git", "worktree", "add", "--detach", dir, commit).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("git worktree add: %w\n%s", err, out)
	}
	defer func() {
		if out, gone := exec.Command("git", "worktree", "remove", "--force", dir).CombinedOutput(); gone != nil && err == nil {
			err = fmt.Errorf("git worktree remove: %w\n%s", gone, out)
		}
	}()
	return arch.Measure(dir)
}

// most is how many packages are shown of each kind.
const most = 5

func show(what string, h arch.House) {
	lines, names := 0, 0
	for _, p := range h {
		lines, names = lines+p.Lines, names+len(p.Names)
	}
	fmt.Printf("%s: %d packages, %d lines without tests, %d names that another module can import\n", what, len(h), lines, names)
	top(h, "largest groups of files that all need one another", func(p arch.Package) int { return len(p.Group) })
	top(h, "largest packages, lines without tests", func(p arch.Package) int { return p.Lines })
	top(h, "names that another module can import", func(p arch.Package) int { return len(p.Names) })
}

func top(h arch.House, title string, of func(arch.Package) int) {
	fmt.Println("  " + title)
	slices.SortStableFunc(h, func(a, b arch.Package) int { return cmp.Compare(of(b), of(a)) })
	for _, p := range h[:min(most, len(h))] {
		fmt.Printf("    %6d  %s\n", of(p), p.Path)
	}
}
