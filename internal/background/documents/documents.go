package documents

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const (
	ext = ".sealed"
	day = "2006-01-02"

	// maxWaiting is how many documents wait to be written, maxFile how many bytes those of
	// one day may take, maxSeen how many digests are remembered, so that a document is kept
	// once a day.
	maxWaiting = 1024
	maxFile    = 1 << 30
	maxSeen    = 100_000
	// maxDocument bounds one, in bytes.
	maxDocument = 64 << 20
	// expireEvery is how often it is looked for files that are too old.
	expireEvery = time.Hour

	digestLen = 2 * sha256.Size // in hex
	nonceLen  = 12
)

// A Store keeps documents by their digests. Use it from several goroutines.
type Store struct {
	dir    string
	aead   cipher.AEAD
	failed func(error)
	queue  chan document
	lost   atomic.Uint64

	// Of the goroutine of Run.
	date string
	file *os.File
	size int64
	seen map[string]bool
}

type document struct {
	digest string
	text   []byte
}

// New returns a store in a folder, which is made when something is kept. The key is derived from
// secret. Failed is called with each error, and with nil when the store works again.
func New(dir string, secret []byte, failed func(error)) (*Store, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "wasmgate audit.arguments 1", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &Store{dir: dir, aead: aead, failed: failed, queue: make(chan document, maxWaiting)}, err
}

// Keep has a document written soon; the caller must not change text afterwards. It does not block: a
// document for which there is no room is lost, and counted.
func (s *Store) Keep(digest string, text []byte) {
	if len(digest) != digestLen || len(text) == 0 || len(text) > maxDocument {
		return
	}
	select {
	case s.queue <- document{digest, text}:
	default:
		s.failed(fmt.Errorf("%d arguments or results came faster than they could be written, and are not kept", s.lost.Add(1)))
	}
}

// Run writes what is to be kept, and removes files of days that ended longer than keep ago,
// until ctx ends and all is written.
func (s *Store) Run(ctx context.Context, keep time.Duration) {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	defer s.close()
	s.expire(keep)
	for {
		select {
		case d := <-s.queue:
			s.failed(s.write(d, time.Now().UTC()))
			continue
		default:
		}
		select {
		case d := <-s.queue:
			s.failed(s.write(d, time.Now().UTC()))
		case <-tick.C:
			s.expire(keep)
		case <-ctx.Done():
			return
		}
	}
}

func (s *Store) close() {
	if s.file != nil {
		s.file.Close()
	}
	s.file, s.date = nil, ""
}

// write appends a document to the file of the day: its length, a nonce, and what is sealed.
func (s *Store) write(d document, now time.Time) error {
	if err := s.open(now.Format(day)); err != nil {
		return err
	}
	if s.seen[d.digest] {
		return nil
	}
	if s.size > maxFile {
		return fmt.Errorf("%s is full with %d bytes: arguments and results of the rest of the day are not kept", s.file.Name(), s.size)
	}
	b := make([]byte, 4+nonceLen, 4+nonceLen+digestLen+len(d.text)+s.aead.Overhead())
	rand.Read(b[4:]) // never fails
	b = s.aead.Seal(b, b[4:4+nonceLen], append([]byte(d.digest), d.text...), []byte(s.date))
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	if _, err := s.file.WriteAt(b, s.size); err != nil {
		s.close()
		return err
	}
	s.size += int64(len(b))
	if len(s.seen) > maxSeen {
		clear(s.seen)
	}
	s.seen[d.digest] = true
	return nil
}

// open opens the last file of a day at its end. If that cannot be read to its end, it stays as
// it is, and the day goes on in another file: what looks half written can be damage, with
// documents behind it.
func (s *Store) open(date string) error {
	if s.date == date {
		return nil
	}
	s.close()
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	names, err := s.files()
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return dateOf(name) != date })
	s.seen = make(map[string]bool)
	next := filepath.Join(s.dir, date+ext)
	for i, name := range names {
		f, err := os.OpenFile(name, os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		end, err := s.frames(f, date, func(d document) error { s.seen[d.digest] = true; return nil })
		last := i == len(names)-1
		if err == nil && last {
			s.file, s.date, s.size = f, date, end
			return nil
		}
		f.Close()
		if err != nil && !errors.Is(err, errDamaged) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%s: %w", name, err)
		}
		next = filepath.Join(s.dir, fmt.Sprintf("%s.%06d%s", date, i+1, ext))
		if last {
			s.failed(fmt.Errorf("%s cannot be read from byte %d on: %w; the file is kept, and the rest of the day goes into %s", name, end, err, filepath.Base(next)))
		}
	}
	f, err := os.OpenFile(next, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	s.file, s.date, s.size = f, date, 0
	return nil
}

// dateOf returns the day of a file: its name is the day and ext, or has a number in between.
func dateOf(name string) string {
	date, _, _ := strings.Cut(filepath.Base(name), ".")
	return date
}

// frames calls with each document of a file, and returns where the last whole one ends.
func (s *Store) frames(r io.Reader, date string, with func(document) error) (end int64, err error) {
	for {
		var head [4]byte
		if _, err := io.ReadFull(r, head[:]); errors.Is(err, io.EOF) {
			return end, nil
		} else if err != nil {
			return end, err
		}
		n := binary.BigEndian.Uint32(head[:])
		if n > maxDocument+1024 || n < nonceLen {
			return end, errDamaged
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			return end, io.ErrUnexpectedEOF
		}
		text, err := s.aead.Open(b[nonceLen:nonceLen], b[:nonceLen], b[nonceLen:], []byte(date))
		if err != nil || len(text) < digestLen {
			return end, errDamaged
		}
		if err := with(document{string(text[:digestLen]), text[digestLen:]}); err != nil {
			return end, err
		}
		end += 4 + int64(n)
	}
}

var errDamaged = errors.New("it was changed, or sealed by another gateway's secret")

// expire removes the files of days that ended longer than keep ago.
func (s *Store) expire(keep time.Duration) {
	names, err := s.files()
	for _, name := range names {
		began, perr := time.Parse(day, dateOf(name))
		if perr == nil && time.Since(began.AddDate(0, 0, 1)) > keep {
			err = errors.Join(err, os.Remove(name))
		}
	}
	if err != nil {
		s.failed(err)
	}
}

// files are those there are, the oldest first.
func (s *Store) files() ([]string, error) {
	list, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, one := range list {
		if strings.HasSuffix(one.Name(), ext) {
			names = append(names, filepath.Join(s.dir, one.Name()))
		}
	}
	slices.SortFunc(names, func(a, b string) int { // the first of a day has no number
		return cmp.Or(strings.Compare(dateOf(a), dateOf(b)), cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
	return names, err
}

// Read returns the wanted documents that are kept, by their digests, and of them so many bytes at
// most; 0 is all. It may be called while another process writes.
func (s *Store) Read(wanted map[string]bool, most int64) (map[string][]byte, error) {
	names, err := s.files()
	found, read := make(map[string][]byte), int64(0)
	for _, name := range names {
		f, oerr := os.Open(name)
		if errors.Is(oerr, fs.ErrNotExist) {
			continue // it has expired
		}
		if oerr != nil {
			return nil, oerr
		}
		_, rerr := s.frames(f, dateOf(name), func(d document) error {
			if size := int64(len(d.text)); wanted[d.digest] && found[d.digest] == nil && (most == 0 || size <= most-read) {
				found[d.digest], read = d.text, read+size
			}
			return nil
		})
		f.Close()
		if rerr != nil && !errors.Is(rerr, io.ErrUnexpectedEOF) {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, rerr))
		}
	}
	return found, err
}
