package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/web/loopback"
)

// Default is the address of the official registry.
const Default = "https://registry.modelcontextprotocol.io"

const (
	fetchTime = 30 * time.Second
	maxCopy   = 64 << 20 // bytes of a file with entries
	maxFiles  = 10_000   // of a folder
)

// Fetch returns the entry of a name that [IsName] takes. Its version, after an @, is the latest if there is none. The
// address is a URL, or a file or folder with entries.
func Fetch(ctx context.Context, address, word string) (*Entry, error) {
	name, version, given := strings.Cut(word, "@")
	if !IsName(name) {
		return nil, fmt.Errorf("%q is not a name of a registry, such as io.github.user/server", name)
	}
	if !given {
		version = "latest"
	}
	if version != "latest" && !exact(version) {
		return nil, fmt.Errorf("NAME@%s: write an exact version after the @, such as 1.2.3, or leave it out for the latest", version)
	}
	var all []*Entry
	var err error
	if strings.Contains(address, "://") {
		all, err = ask(ctx, address, name, version)
	} else {
		all, err = read(address)
	}
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", address, err)
	}
	e, err := pick(all, name, version)
	if err == nil {
		err = e.check()
	}
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", address, err)
	}
	return e, nil
}

// pick returns the entry that was asked for, and no other.
func pick(all []*Entry, name, version string) (*Entry, error) {
	named := slices.DeleteFunc(slices.Clone(all), func(e *Entry) bool { return e.Name != name || version != "latest" && e.Version != version })
	if len(named) == 0 {
		if len(all) == 1 {
			return nil, fmt.Errorf("it answers with %q %q, but %s %s was requested", all[0].Name, all[0].Version, name, version)
		}
		return nil, fmt.Errorf("it has no %s %s", name, version)
	}
	return slices.MaxFunc(named, func(a, b *Entry) int {
		if a.Latest != b.Latest {
			return map[bool]int{true: 1, false: -1}[a.Latest]
		}
		return Compare(a.Version, b.Version)
	}), nil
}

// Compare orders versions: number by number, and a release after what leads to it.
func Compare(a, b string) int {
	cut := func(v string) (numbers []string, rest string) {
		v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "+")
		v, rest, _ = strings.Cut(v, "-")
		return strings.Split(v, "."), rest
	}
	x, before := cut(a)
	y, after := cut(b)
	for i := range max(len(x), len(y)) {
		var m, n int
		if i < len(x) {
			m, _ = strconv.Atoi(x[i]) // what is no number counts as 0
		}
		if i < len(y) {
			n, _ = strconv.Atoi(y[i])
		}
		if m != n {
			return cmp.Compare(m, n)
		}
	}
	if (before == "") != (after == "") {
		return map[bool]int{true: 1, false: -1}[before == ""]
	}
	return strings.Compare(before, after)
}

// ask asks a registry.
func ask(ctx context.Context, address, name, version string) ([]*Entry, error) {
	base, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || base.Host == "" || base.User != nil || base.Scheme != "https" && (base.Scheme != "http" || !loopback.Host(base.Hostname())) {
		return nil, errors.New("the address of a registry must be an https URL without a user name, or a file or folder")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String()+"/v0.1/servers/"+url.PathEscape(name)+"/versions/"+url.PathEscape(version), http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	client := &http.Client{CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if len(via) > 3 || next.URL.Host != base.Host || next.URL.Scheme != base.Scheme {
			return fmt.Errorf("it redirects to %s", next.URL.Host)
		}
		return nil
	}}
	resp, err := client.Do(r)
	if err != nil {
		return nil, errors.New(strings.TrimSpace(strings.ReplaceAll(err.Error(), "\n", " ")))
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("it has no %s %s", name, version)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it answers with status %d", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxEntry+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxEntry {
		return nil, fmt.Errorf("its answer has more than %d bytes", maxEntry)
	}
	return parse(data)
}

// read returns the entries of an offline copy: those of a file, or of the JSON files of a folder.
func read(path string) (all []*Entry, err error) {
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(globbed(path), "*.json")); err != nil {
			return nil, err
		}
	}
	if len(files) > maxFiles {
		return nil, fmt.Errorf("the folder has more than %d files", maxFiles)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || info.Size() > maxCopy {
			return nil, fmt.Errorf("%s is not a file, or has more than %d bytes", file, maxCopy)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		entries, err := parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, entries...)
	}
	return all, nil
}

// globbed returns a path as a pattern that matches it alone.
func globbed(path string) string {
	if filepath.Separator == '\\' {
		return path
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
