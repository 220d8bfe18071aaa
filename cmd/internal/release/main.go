// Command release makes the files of a release that have a format of their own, byte for byte the same for the same
// input, without a daemon or packaging tools:
//
//	release image -o FOLDER [-files FOLDER] PROGRAM...    an OCI image layout, of a program for each platform
//	release deb -o FILE FOLDER                            a Debian package of an unpacked archive for linux
//	release sbom -o FILE PROGRAM...                       what programs were built from, as CycloneDX
//	release provenance -o FILE FILE...                    how files were built, as an in-toto statement with SLSA provenance
//
// Each takes -version, -created (a Unix time) and, for the provenance, -commit.
package main

import (
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// A release is what its files say about it.
type release struct {
	version, commit string
	created         time.Time
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: release image|deb|sbom|provenance [FLAGS] FILE...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "release %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func run(kind string, args []string) error {
	flags := flag.NewFlagSet(kind, flag.ExitOnError)
	out := flags.String("o", "", "file or folder to make")
	version := flags.String("version", "v0.0.0-dev", "of wasmgate")
	commit := flags.String("commit", "", "that was built")
	created := flags.Int64("created", 0, "Unix time of the commit")
	files := flags.String("files", "", "folder with a folder of files for each architecture, which the image holds too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() == 0 {
		return fmt.Errorf("name the output with -o, and the files to make it from")
	}
	r := release{version: *version, commit: *commit, created: time.Unix(*created, 0).UTC()}
	var text []byte
	var err error
	switch kind {
	case "image":
		return r.image(*out, *files, flags.Args())
	case "deb":
		text, err = r.deb(flags.Arg(0))
	case "sbom":
		var programs []program
		if programs, err = readPrograms(flags.Args()); err == nil {
			text, err = r.sbom(programs)
		}
	case "provenance":
		text, err = r.provenance(flags.Args())
	default:
		return fmt.Errorf("there is no such kind of file")
	}
	if err != nil {
		return err
	}
	return os.WriteFile(*out, text, 0o644)
}

// image makes the layout of an image in a folder that does not exist yet.
func (r release) image(out, files string, names []string) error {
	programs, err := readPrograms(names)
	if err != nil {
		return err
	}
	l, err := newLayout(out, r)
	if err != nil {
		return err
	}
	for _, p := range programs {
		if err := l.add(p, files); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return l.close()
}

// A program is an executable file of the release.
type program struct {
	name     string
	data     []byte
	info     *buildinfo.BuildInfo
	os, arch string
}

func readPrograms(names []string) (all []program, err error) {
	for _, name := range names {
		p, err := readProgram(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// readProgram reads a program, which says itself for which platform it is.
func readProgram(name string) (p program, err error) {
	p.name = name
	if p.data, err = os.ReadFile(name); err != nil {
		return p, err
	}
	if p.info, err = buildinfo.ReadFile(name); err != nil {
		return p, err
	}
	for _, s := range p.info.Settings {
		switch s.Key {
		case "GOOS":
			p.os = s.Value
		case "GOARCH":
			p.arch = s.Value
		case "CGO_ENABLED":
			if s.Value != "0" {
				return p, fmt.Errorf("was built with cgo, and needs libraries of its machine: build it with CGO_ENABLED=0")
			}
		}
	}
	if p.os == "" || p.arch == "" {
		return p, fmt.Errorf("does not say for which platform it was built")
	}
	return p, nil
}

// forLinux reports a program that no image and no Debian package can hold.
func (p program) forLinux() error {
	if p.os != "linux" {
		return fmt.Errorf("is for %s: images and packages hold programs for linux", strings.Trim(p.os+"/"+p.arch, "/"))
	}
	return nil
}
