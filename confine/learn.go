package confine

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	// foldFrom is how many folders next to each other are proposed as the one around them.
	foldFrom = 3
	// maxLeft bounds the list of what a proposal leaves out.
	maxLeft = 20
)

// A Proposal is a set of rules that would have allowed what was used.
type Proposal struct {
	Rules Rules
	// Left is what was used and is not in Rules, with the reason in words: it is
	// for a person to decide. At most 20, keys first, and a line for the others.
	Left []string
}

// Propose folds what a child used into rules: files into their folders, many folders next to each
// other into the one around them. What every confined child may use is left out, and it never
// proposes the root, home or any other folder that holds more than one concern, nor keys, what runs
// when its user signs in, or what belongs to the gateway: the files and folders in own. Home and
// own may be, or lead through, symbolic links.
//
// A proposal allows what was seen, good or bad: it is to be read before it is
// used.
func Propose(used []Access, home string, own []string) Proposal {
	homes := resolved([]string{home})
	p := &proposer{
		homes: homes, own: resolved(own), keys: newPlaces(homes, keyPlaces), logins: newPlaces(homes, loginPlaces),
		shared: newPlaces(homes, sharedFolders), paths: make(map[AccessKind]map[string]bool),
	}
	for _, a := range used {
		p.add(a)
	}
	return p.proposal()
}

// resolved returns paths and where they lead.
func resolved(paths []string) []string {
	var all []string
	for _, path := range paths {
		all = append(all, filepath.Clean(path))
		if real, err := filepath.EvalSymlinks(path); err == nil && real != filepath.Clean(path) {
			all = append(all, real)
		}
	}
	return all
}

type proposer struct {
	homes, own           []string // also without links
	keys, logins, shared places
	paths                map[AccessKind]map[string]bool // folders, or files of broad folders
	rules                Rules
	left                 [leftKinds][]string
}

// Reasons why accesses are left out, the most important first: accesses that a server can repeat
// without end must not push out those that it made once.
const (
	leftKey = iota
	leftWide
	leftSystem
	leftSocket
	leftKinds
)

func (p *proposer) add(a Access) {
	switch {
	case a.Kind == AccessConnect && a.Port == portOfNames:
		p.rules.DNS = true
	case a.Kind == AccessConnect:
		if !slices.Contains(p.rules.Connect, a.Port) {
			p.rules.Connect = append(p.rules.Connect, a.Port)
		}
	case a.Kind == AccessSocket:
		p.leave(leftSocket, a.Path+": sockets other than TCP are never allowed")
	case ownProcess.MatchString(a.Path): // of the child itself, or of no concern
	case beneathAny(a.Path, systemFolders):
		p.leave(leftSystem, a.Path+": of the system, and mostly not needed; name it under "+string(a.Kind)+" if it is")
	case beneathAny(a.Path, p.own):
		p.leave(leftKey, a.Path+": it belongs to the gateway or to an agent, and decides what servers may do")
	case p.keys.have(a.Path):
		p.leave(leftKey, a.Path+": among keys; name it under "+string(a.Kind)+" if the server is meant to have it")
	case a.Kind == AccessWrite && p.logins.have(a.Path):
		p.leave(leftKey, a.Path+": it runs outside of the server, such as when you sign in; name it under write if the server is meant to change it")
	case p.broad(a.Path):
		p.leave(leftWide, a.Path+": the whole folder was used ("+string(a.Kind)+"); name what of it is needed")
	default:
		if p.paths[a.Kind] == nil {
			p.paths[a.Kind] = make(map[string]bool)
		}
		p.paths[a.Kind][p.place(a)] = true
	}
}

// place returns what is to be named for an access: the folder of a file, unless
// that holds more, and of installed packages the folder of all.
func (p *proposer) place(a Access) string {
	if a.Kind == AccessExecute {
		return a.Path
	}
	for _, name := range packageFolders {
		if before, _, ok := strings.Cut(a.Path+"/", "/"+name+"/"); ok && a.Kind == AccessRead {
			return before + "/" + name
		}
	}
	if folder := filepath.Dir(a.Path); !a.Folder && !p.broad(folder) {
		return folder
	}
	return a.Path
}

func (p *proposer) leave(kind int, s string) {
	if !slices.Contains(p.left[kind], s) {
		p.left[kind] = append(p.left[kind], s)
	}
}

func (p *proposer) proposal() Proposal {
	r := p.rules
	r.Write = p.fold(AccessWrite, nil)
	r.Execute = p.fold(AccessExecute, nil)
	r.Read = p.fold(AccessRead, slices.Concat(r.Write, r.Execute))
	slices.Sort(r.Connect)
	var left []string
	for _, some := range p.left {
		slices.Sort(some)
		left = append(left, some...)
	}
	if n := len(left) - maxLeft; n > 0 {
		left = append(left[:maxLeft], fmt.Sprintf("%d more", n))
	}
	return Proposal{Rules: r, Left: left}
}

// fold returns the paths of a kind, without those in folders that known contains already.
func (p *proposer) fold(kind AccessKind, known []string) []string {
	set := make(map[string]bool)
	for path := range p.paths[kind] {
		if !beneathAny(path, known) {
			set[path] = true
		}
	}
	for again := true; again; {
		again = false
		around := make(map[string]int)
		for path := range set {
			around[filepath.Dir(path)]++
		}
		for folder, n := range around {
			if n >= foldFrom && !p.broad(folder) && !set[folder] {
				set[folder], again = true, true
			}
		}
		for path := range set {
			if set[filepath.Dir(path)] || p.inSet(set, filepath.Dir(path)) {
				delete(set, path)
			}
		}
	}
	var list []string
	for path := range set {
		list = append(list, path)
	}
	slices.Sort(list)
	return list
}

// inSet reports whether path or a folder around it is in set.
func (p *proposer) inSet(set map[string]bool, path string) bool {
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		if set[path] {
			return true
		}
	}
	return false
}

// broad reports whether a folder holds more than one concern: the root and folders directly beneath
// it, home and the ways to it, other homes, folders where many programs keep their files, and those
// that contain keys, programs or the gateway's own files.
func (p *proposer) broad(folder string) bool {
	around := func(path string) bool { return beneath(path, folder) }
	return filepath.Dir(folder) == "/" || filepath.Dir(folder) == "/home" || folder == "/var/lib" ||
		slices.ContainsFunc(p.homes, around) || slices.ContainsFunc(p.own, around) || slices.ContainsFunc(p.shared.real, around) ||
		p.keys.below(folder) || p.logins.below(folder)
}

// systemFolders hold what the kernel tells and what is there only while the
// machine runs.
var systemFolders = []string{"/proc", "/sys", "/dev", "/run"}

// ownProcess are the places where processes look at themselves.
var ownProcess = regexp.MustCompile("^/proc/[0-9]+(/|$)|^/sys/fs/cgroup/")

// sharedFolders are those of many programs, in home.
var sharedFolders = []string{".config", ".cache", ".local", ".local/share", ".local/state", ".local/bin"}

// packageFolders hold installed packages.
var packageFolders = []string{"node_modules", "site-packages"}
