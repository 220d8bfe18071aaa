package folder

import (
	"path"
	"slices"
	"strings"
)

// strayEndings are those of backups, of swap files of editors and of what a merge leaves.
var strayEndings = []string{".swp", ".swo", ".swn", ".swx", ".bak", ".tmp", ".orig", ".rej", ".part", ".crdownload"}

// strayNames are those of files that vim, Windows, macOS and file systems make.
var strayNames = []string{"4913", "Thumbs.db", "desktop.ini", "Icon\r", "__MACOSX", "lost+found"}

// Stray reports whether an entry of a folder is none of its contents: hidden, such as ..data of a
// ConfigMap, .git and .#a.rego, or left there by an editor or a system.
func Stray(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") ||
		strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") ||
		slices.Contains(strayNames, name) || slices.Contains(strayEndings, strings.ToLower(path.Ext(name)))
}

// StrayPath reports whether a part of a path with slashes is stray.
func StrayPath(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), Stray)
}
