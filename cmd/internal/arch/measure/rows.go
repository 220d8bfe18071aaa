package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/cmd/internal/arch"
)

// A row is one line of the table. Either it has a figure, or the Command that prints it.
type row struct {
	What    string   `json:"what"`
	Now     string   `json:"now,omitempty"`
	Then    string   `json:"then,omitempty"` // of the commit that is named
	Goal    string   `json:"goal"`
	Most    []figure `json:"most,omitempty"` // where it is the largest
	Command string   `json:"command,omitempty"`
}

// A figure is that of one package.
type figure struct {
	Where  string `json:"where"`
	Figure string `json:"figure"`
}

// most is how many packages are shown of a row.
const most = 5

// measured returns all rows for the module in a folder.
func measured(dir string, h arch.House) ([]row, error) {
	s := h.Surface()
	lines := 0
	for _, p := range h {
		lines += p.Lines
	}
	folders, err := foldersIn(filepath.Join(dir, "internal"))
	if err != nil {
		return nil, err
	}
	program, err := modulesOf(dir, "./cmd/wasmgate")
	if err != nil {
		return nil, err
	}
	embedder, err := modulesOf(dir, "./bridge/gateway")
	if err != nil {
		return nil, err
	}
	embedder++ // it links this module, too
	return []row{
		{What: "public types that cannot be named: " + strings.Join(s.Unnamed, " "), Now: strconv.Itoa(len(s.Unnamed)), Goal: "0"},
		{What: "public aliases: " + strings.Join(s.Aliases, " "), Now: strconv.Itoa(len(s.Aliases)), Goal: "3"},
		largest(h, "files of a package that all need one another", "12", func(p arch.Package) int { return len(p.Group) }, func(p arch.Package) string { return strconv.Itoa(len(p.Group)) }),
		largest(h, "lines of a package without tests", "5000; gate 6500", func(p arch.Package) int { return p.Lines }, func(p arch.Package) string { return strconv.Itoa(p.Lines) }),
		largest(h, "imports between the files of a package that run upward", "12 %", arch.Package.UpwardPercent, func(p arch.Package) string {
			return fmt.Sprintf("%d %% (%d of %d)", p.UpwardPercent(), len(p.Upward), p.Uses)
		}),
		largest(h, "methods of a struct", "40", func(p arch.Package) int { return p.Methods }, func(p arch.Package) string {
			return fmt.Sprintf("%d %s", p.Methods, p.Struct)
		}),
		{What: "stages of a plain tools/call", Goal: "20; no package entered more than twice", Command: "go run -cover -covermode=atomic -coverpkg=./... ./cmd/internal/arch/passed"},
		{What: "first-level folders below internal/", Now: strconv.Itoa(folders), Goal: "55"},
		{What: "production lines", Now: strconv.Itoa(lines), Goal: "118000"},
		{What: "modules linked by the program, by an embedder", Now: fmt.Sprintf("%d, %d", program, embedder), Goal: "61, 40"},
		{What: "CPU to the raw proxy's, 16 clients: 64 B, 4 KB, 64 KB, 1 MB", Goal: "1.3, 1.4, 2.2, 3.2", Command: ".ci/speed"},
		{What: "CPU to the raw proxy's, one client", Goal: "1.30", Command: ".ci/speed"},
		{What: "p99 to the raw proxy's, 16 clients", Goal: "0.9", Command: ".ci/speed"},
		{What: "seconds of the short tests, warm, two cores", Goal: "60", Command: "time go test -short ./..."},
	}, nil
}

// largest returns the row of a figure that each package has.
func largest(h arch.House, what, goal string, of func(arch.Package) int, show func(arch.Package) string) row {
	h = slices.Clone(h)
	slices.SortStableFunc(h, func(a, b arch.Package) int { return cmp.Compare(of(b), of(a)) })
	r := row{What: what, Goal: goal, Now: show(h[0])}
	for _, p := range h[:min(most, len(h))] {
		r.Most = append(r.Most, figure{p.Path, show(p)})
	}
	return r
}

// foldersIn counts the folders in a folder.
func foldersIn(dir string) (n int, err error) {
	all, err := os.ReadDir(dir)
	for _, one := range all {
		if one.IsDir() {
			n++
		}
	}
	return n, err
}

// modulesOf counts the other modules that a package links.
func modulesOf(dir, pkg string) (int, error) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", pkg)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("go list -deps %s: %w", pkg, err)
	}
	all := strings.Fields(string(out))
	slices.Sort(all)
	return len(slices.Compact(all)), nil
}
