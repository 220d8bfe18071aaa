package wire

import (
	"bytes"
	"log/slog"
	"time"
)

const (
	// maxStderrLine bounds a line of a server's log; the rest of it is dropped.
	maxStderrLine = 2 << 10
	// maxStderrRate bounds the lines kept of a server's log in each second.
	maxStderrRate = 50
)

// stderrLog writes the standard error of a server into the log, a record a
// line, bounded in length and rate. The child's one copying goroutine calls it.
type stderrLog struct {
	log     *slog.Logger
	line    []byte
	last    string // line that was not empty
	second  time.Time
	lines   int
	dropped int
}

func (s *stderrLog) Write(p []byte) (int, error) {
	n := len(p)
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
	s.last = string(line)
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
	s.log.Info("server log", "line", string(line))
}
