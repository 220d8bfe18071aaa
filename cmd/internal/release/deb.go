package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// config is the file that an operator edits: dpkg keeps it on upgrade.
const config = "etc/wasmgate/wasmgate.yaml"

// control describes a package. Its version and architecture are Debian's.
const control = `Package: wasmgate
Version: %s
Architecture: %s
Maintainer: The wasmgate authors <wasmgate@users.noreply.github.com>
Installed-Size: %d
Depends: passwd
Section: net
Priority: optional
Homepage: ` + source + `
Description: Gateway between AI agents and their tools
 wasmgate checks every MCP call against a policy, validates and sanitizes what
 goes in and out, and logs it. Untrusted tools run in a WebAssembly sandbox.
`

// The scripts make the service's user, and leave the service off until someone enables it. Removing the package keeps
// /var/lib/wasmgate: the audit log is evidence.
const (
	afterInstall = `#!/bin/sh
set -e
getent passwd wasmgate >/dev/null || useradd --system --home-dir /var/lib/wasmgate --shell /usr/sbin/nologin wasmgate
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	[ -z "$2" ] || systemctl try-restart wasmgate.service
fi
`
	beforeRemoval = `#!/bin/sh
set -e
[ "$1" != remove ] || [ ! -d /run/systemd/system ] || systemctl disable --now wasmgate.service
`
	afterRemoval = `#!/bin/sh
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
`
)

// deb makes a Debian package of what an archive for linux holds: an ar archive of debian-binary, the package's
// description and its files (deb(5)).
func (r release) deb(folder string) ([]byte, error) {
	read := func(name string) (text []byte, err error) { return os.ReadFile(filepath.Join(folder, name)) }
	programs, err := readPrograms([]string{filepath.Join(folder, "wasmgate"), filepath.Join(folder, "wasmgate-hook")})
	if err != nil {
		return nil, err
	}
	unit, err := read("deploy/systemd/wasmgate.service")
	if err != nil {
		return nil, err
	}
	files := newTree(r.created)
	for _, p := range programs {
		if err := p.forLinux(); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		files.file("usr/bin/"+filepath.Base(p.name), 0o755, p.data)
	}
	files.file("usr/lib/systemd/system/wasmgate.service", 0o644, bytes.ReplaceAll(unit, []byte("/usr/local/bin/"), []byte("/usr/bin/")))
	for from, to := range map[string]string{"deploy/systemd/wasmgate.yaml": config, "LICENSE": "usr/share/doc/wasmgate/copyright", "README.md": "usr/share/doc/wasmgate/README.md"} {
		text, err := read(from)
		if err != nil {
			return nil, err
		}
		files.file(to, 0o644, text)
	}
	manual, err := read("wasmgate.1")
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&page, gzip.BestCompression) // a level that there is
	_, err = zip.Write(manual)
	if err = errors.Join(err, zip.Close()); err != nil {
		return nil, err
	}
	files.file("usr/share/man/man1/wasmgate.1.gz", 0o644, page.Bytes())
	data, _, err := files.packed()
	if err != nil {
		return nil, err
	}
	about := newTree(r.created)
	version := strings.Replace(strings.TrimPrefix(r.version, "v"), "-", "~", 1) // ~ sorts before the release itself
	about.file("control", 0o644, fmt.Appendf(nil, control, version, programs[0].arch, files.size/1024))
	about.file("conffiles", 0o644, []byte("/"+config+"\n"))
	about.file("postinst", 0o755, []byte(afterInstall))
	about.file("prerm", 0o755, []byte(beforeRemoval))
	about.file("postrm", 0o755, []byte(afterRemoval))
	described, _, err := about.packed()
	if err != nil {
		return nil, err
	}
	out := bytes.NewBufferString("!<arch>\n")
	for _, member := range []struct {
		name string
		data []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", described}, {"data.tar.gz", data}} {
		fmt.Fprintf(out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", member.name, r.created.Unix(), 0, 0, 0o100644, len(member.data))
		out.Write(member.data)
		if len(member.data)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes(), nil
}
