package wire

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxStderrLine bounds a line of a server's log; the rest of it is dropped.
	maxStderrLine = 2 << 10
	// maxStderrRate bounds the lines kept of a server's log in each second.
	maxStderrRate = 50
)

// stderrLog writes the standard error of a server into the log, a record a
// line, bounded in length and rate, and keeps the last lines. The child's one copying
// goroutine writes.
type stderrLog struct {
	log     *slog.Logger
	level   slog.Level
	line    []byte
	second  time.Time
	lines   int
	dropped int
	written atomic.Int64 // bytes

	mu   sync.Mutex
	tail []string // the last lines that were not empty, the oldest first
}

// MaxTail is how many lines of a server's standard error are kept.
const MaxTail = 20

// Tail returns the last lines that the server has written, the oldest first.
func (s *stderrLog) Tail() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tail)
}

func (s *stderrLog) keep(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tail) == MaxTail {
		s.tail = slices.Delete(s.tail, 0, 1)
	}
	s.tail = append(s.tail, line)
}

// looksBad is how programs begin to say what went wrong.
var looksBad = regexp.MustCompile(`(?i)\w*(error|exception)\b|\b(fatal|panic|cannot|can't|could not|couldn't|denied|refused|not found|no such|missing|invalid|failed|unable)\b|^E[A-Z]{3,}\b`)

// Telling returns the line out of the last ones that says best why a server ended: the
// first that looks like an error, or else the last. Traces and advice come after it.
func Telling(tail []string) string {
	for _, line := range tail {
		if looksBad.MatchString(line) {
			return line
		}
	}
	if len(tail) == 0 {
		return ""
	}
	return tail[len(tail)-1]
}

// noModule is what Node says of a package that is not all there, and npxFolder where npx
// installs packages, one folder each.
var (
	noModule  = regexp.MustCompile(`ERR_MODULE_NOT_FOUND|MODULE_NOT_FOUND|Cannot find (module|package)`)
	npxFolder = regexp.MustCompile(`[/\\]_npx[/\\]([0-9a-f]{8,64})[/\\]`)
)

// advice returns what an operator can do about what a child has said; "" if that is not
// known. An npx that was ended in mid-install leaves half a package behind, and starts
// what is there from then on.
func advice(tail []string) string {
	said := strings.Join(tail, "\n")
	m := npxFolder.FindStringSubmatch(said)
	if m == nil || !noModule.MatchString(said) {
		return ""
	}
	return "npx has half of the package: remove the folder _npx/" + m[1] + " of npm's cache (npm config get cache), and it is installed anew"
}

func (s *stderrLog) Write(p []byte) (int, error) {
	n := len(p)
	s.written.Add(int64(n))
	for {
		part, rest, ended := bytes.Cut(p, []byte("\n"))
		if room := maxStderrLine - len(s.line); len(part) > room {
			part = part[:room]
		}
		s.line = append(s.line, part...)
		if !ended {
			return n, nil
		}
		s.emit(time.Now())
		p = rest
	}
}

// end writes what came after the last newline. The copying has ended.
func (s *stderrLog) end() { s.emit(time.Now()) }

func (s *stderrLog) emit(now time.Time) {
	line := bytes.TrimRight(s.line, "\r")
	defer func() { s.line = s.line[:0] }()
	if len(line) == 0 {
		return
	}
	s.keep(string(line))
	if now.Sub(s.second) >= time.Second {
		if s.dropped > 0 {
			s.log.Warn("server log dropped", "lines", s.dropped)
		}
		s.second, s.lines, s.dropped = now, 0, 0
	}
	if s.lines++; s.lines > maxStderrRate {
		s.dropped++
		return
	}
	s.log.Log(context.Background(), s.level, "server log", "line", string(line))
}
