// Command image makes an OCI image of binaries of wasmgate, without a daemon: a folder in
// the image layout (OCI Image Specification, image-layout.md), byte for byte the same for
// the same binaries.
//
//	go run ./cmd/internal/image -o dist/image -version v1.2.3 -created 1790000000 dist/wasmgate-linux-amd64 dist/wasmgate-linux-arm64
package main

import (
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	out := flag.String("o", "image", "folder to make; it must not be there")
	version := flag.String("version", "dev", "of wasmgate")
	created := flag.Int64("created", 0, "Unix time that the image says it was made at")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "name the binaries, one for each platform")
		os.Exit(2)
	}
	if err := run(*out, *version, time.Unix(*created, 0).UTC(), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(out, version string, created time.Time, binaries []string) error {
	l, err := newLayout(out)
	if err != nil {
		return err
	}
	for _, name := range binaries {
		if err := l.add(name, version, created); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return l.close(version, created)
}

// A binary is one that an image is made of.
type binary struct {
	data     []byte
	info     *buildinfo.BuildInfo
	os, arch string
}

// readBinary reads a binary, which says itself for which platform it is.
func readBinary(name string) (b binary, err error) {
	if b.data, err = os.ReadFile(name); err != nil {
		return b, err
	}
	if b.info, err = buildinfo.ReadFile(name); err != nil {
		return b, err
	}
	for _, s := range b.info.Settings {
		switch s.Key {
		case "GOOS":
			b.os = s.Value
		case "GOARCH":
			b.arch = s.Value
		case "CGO_ENABLED":
			if s.Value != "0" {
				return b, fmt.Errorf("was built with cgo, and needs libraries that the image does not have: build it with CGO_ENABLED=0")
			}
		}
	}
	if b.os != "linux" || b.arch == "" {
		return b, fmt.Errorf("is for %s: an image has binaries for linux", strings.Trim(b.os+"/"+b.arch, "/"))
	}
	return b, nil
}
