// Program measure prints the rows of the table that bounds how the module is built: what other
// modules see of it, how entangled and how large its packages are, and what it links. Each row has
// the goal, what is found now, and what is found in another commit. Rows that another command
// measures name that command.
//
//	go run ./cmd/internal/arch/measure [--json] [COMMIT]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"text/tabwriter"

	"github.com/wasmgate/wasmgate/cmd/internal/arch"
)

func main() {
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: measure [--json] [COMMIT]") }
	flag.Parse()
	if flag.NArg() > 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*asJSON, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(asJSON bool, commit string) error {
	rows, err := rowsOf(".")
	if err != nil {
		return err
	}
	if commit != "" {
		then, err := rowsOfCommit(commit)
		if err != nil {
			return err
		}
		for i := range rows {
			rows[i].Then = then[i].Now
		}
	}
	if asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(rows)
	}
	return show(rows, commit)
}

// rowsOfCommit measures a commit in a folder of its own.
func rowsOfCommit(commit string) (rows []row, err error) {
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
	return rowsOf(dir)
}

func rowsOf(dir string) ([]row, error) {
	h, err := arch.Measure(dir)
	if err != nil {
		return nil, err
	}
	return measured(dir, h)
}

func show(rows []row, commit string) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	line := func(what, now, then, goal string) {
		if commit == "" {
			fmt.Fprintf(w, "%s\t%s\t%s\n", what, now, goal)
		} else {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", what, now, then, goal)
		}
	}
	line("WHAT", "NOW", commit, "GOAL")
	for _, r := range rows {
		now := r.Now
		if r.Command != "" {
			now = "see below"
		}
		line(r.What, now, r.Then, r.Goal)
		for _, one := range r.Most {
			line("  "+one.Where, one.Figure, "", "")
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println("\nRows that another command measures:")
	for _, r := range rows {
		if r.Command != "" {
			fmt.Fprintf(w, "  %s\t%s\n", r.What, r.Command)
		}
	}
	return w.Flush()
}
