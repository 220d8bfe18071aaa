package index

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"sync"

	"github.com/wasmgate/wasmgate/internal/files"
)

const (
	// maxRows is how many rows a segment has at most: a name's number fits into two bytes.
	maxRows = 1<<16 - 1
	// maxWords is how many bytes the different names of a segment may take, and maxSpan how
	// many bytes of the log it may be about.
	maxWords = 2 << 20
	maxSpan  = 1 << 31
	magic    = "wgindex1"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A head says what a segment is about.
type head struct {
	File         string // the digest of the first line of the log's file
	From, To     int64  // the part of its text
	First, Last  uint64 // numbers of records
	Since, Until int64  // times, in microseconds
	Rows         int
	Blocks       []block
}

// A block is a part of a segment's file, with its CRC-32C.
type block struct {
	At  int64
	Len int
	Sum uint32
}

// The blocks of a segment; after them come, for each column, its numbers and its words.
const (
	blockTime = iota
	blockSeq
	blockPlace
	blockID
	blockParent
	blockFlags
	blockNames
)

// A table holds the columns of a segment: all of those that are being made, or those that were
// read of a file.
type table struct {
	head
	times       []int64
	seqs        []uint64
	places      []uint32 // after From
	ids, parent []uint64
	flags       []byte
	names       [columns][]uint16 // numbers of words
	words       [columns][]string

	known [columns]map[string]uint16 // numbers by words, while it is made
	bytes int                        // that the words take

	file *os.File  // nil: all columns are there
	kept []*[]byte // blocks of the file that are in use
}

// spare are unused blocks: allocating those of a large log would take megabytes for each query.
var spare = sync.Pool{New: func() any { return new([]byte) }}

func newTable(file string, from int64) *table {
	t := &table{head: head{File: file, From: from, To: from}}
	for i := range t.known {
		t.known[i] = make(map[string]uint16)
	}
	return t
}

// full reports whether the row of a record at an offset has no room.
func (t *table) full(at int64, rows int) bool {
	return t.Rows >= rows || t.bytes >= maxWords || at-t.From >= maxSpan
}

func (t *table) add(r *row, at int64) {
	if t.Rows == 0 {
		t.First, t.Since, t.Until = r.seq, r.time, r.time
	}
	t.First, t.Last = min(t.First, r.seq), max(t.Last, r.seq)
	t.Since, t.Until = min(t.Since, r.time), max(t.Until, r.time)
	t.times, t.seqs, t.places = append(t.times, r.time), append(t.seqs, r.seq), append(t.places, uint32(at-t.From))
	t.ids, t.parent, t.flags = append(t.ids, r.id), append(t.parent, r.parent), append(t.flags, r.flags)
	for i, name := range r.names {
		n, ok := t.known[i][string(name)]
		if !ok {
			n = uint16(len(t.words[i]))
			t.words[i] = append(t.words[i], string(name))
			t.known[i][string(name)] = n
			t.bytes += len(name) + 64
		}
		t.names[i] = append(t.names[i], n)
	}
	t.Rows++
}

// write writes a segment to a file that is whole or not there.
func (t *table) write(name string) error {
	body := make([]byte, 0, t.size())
	put := func(b []byte) {
		t.Blocks = append(t.Blocks, block{int64(len(body)), len(b), crc32.Checksum(b, castagnoli)})
		body = append(body, b...)
	}
	t.Blocks = nil
	put(encode(t.times))
	put(encode(t.seqs))
	put(encode(t.places))
	put(encode(t.ids))
	put(encode(t.parent))
	put(t.flags)
	for i := range columns {
		put(encode(t.names[i]))
		var words []byte
		for _, w := range t.words[i] {
			words = append(binary.AppendUvarint(words, uint64(len(w))), w...)
		}
		put(words)
	}
	h, err := json.Marshal(t.head)
	if err != nil {
		return err
	}
	b := append([]byte(magic), encode([]uint32{uint32(len(h)), crc32.Checksum(h, castagnoli)})...)
	b = append(append(b, h...), body...)
	return files.Replace(name, b, 0o600)
}

// size is about how many bytes the blocks take.
func (t *table) size() int { return t.Rows*(8+8+4+8+8+1+2*columns) + t.bytes }

// A number is what a column has.
type number interface {
	~int64 | ~uint64 | ~uint32 | ~uint16
}

func encode[N number](all []N) []byte {
	b := make([]byte, 0, len(all)*binary.Size(N(0)))
	b, _ = binary.Append(b, binary.LittleEndian, all) // of a fixed size
	return b
}

var errDamaged = errors.New("a segment of the index is damaged")

// readHead reads what a segment is about, and where its blocks begin.
func readHead(f *os.File) (h head, body int64, err error) {
	begin := make([]byte, len(magic)+8)
	if _, err := f.ReadAt(begin, 0); err != nil || string(begin[:len(magic)]) != magic {
		return h, 0, errDamaged
	}
	n := int(binary.LittleEndian.Uint32(begin[len(magic):]))
	if n > 1<<16 {
		return h, 0, errDamaged
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, int64(len(begin))); err != nil || crc32.Checksum(b, castagnoli) != binary.LittleEndian.Uint32(begin[len(magic)+4:]) {
		return h, 0, errDamaged
	}
	if err := json.Unmarshal(b, &h); err != nil || len(h.Blocks) != blockNames+2*columns || h.Rows > maxRows {
		return h, 0, errDamaged
	}
	return h, int64(len(begin) + n), nil
}

// A segment is one that was written.
type segment struct {
	head
	name string
	body int64
}

func openSegment(name string) (*segment, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, body, err := readHead(f)
	return &segment{h, name, body}, err
}

// table opens a segment, and reads nothing of it yet. The caller closes its file.
func (s *segment) table() (*table, error) {
	f, err := os.Open(s.name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return &table{head: s.head, file: f, bytes: int(s.body)}, nil
}

// block reads a block of the file, which is there until the table is closed.
func (t *table) block(n int) ([]byte, error) {
	b := spare.Get().(*[]byte)
	t.kept = append(t.kept, b)
	*b = slices.Grow((*b)[:0], t.Blocks[n].Len)[:t.Blocks[n].Len]
	if _, err := t.file.ReadAt(*b, int64(t.bytes)+t.Blocks[n].At); err != nil || crc32.Checksum(*b, castagnoli) != t.Blocks[n].Sum {
		return nil, errDamaged
	}
	return *b, nil
}

// same returns whether a row has a digest in a column that is there, or is read.
func (t *table) same(n int, column []uint64, want uint64) (func(i int) bool, error) {
	if t.file == nil {
		return func(i int) bool { return column[i] == want }, nil
	}
	b, err := t.block(n)
	if err != nil || len(b) != t.Rows*8 {
		return nil, errDamaged
	}
	return func(i int) bool { return binary.LittleEndian.Uint64(b[8*i:]) == want }, nil
}

// read reads a column, if it is not there.
func read[N number](t *table, n int, to *[]N) error {
	if t.file == nil || *to != nil {
		return nil
	}
	b, err := t.block(n)
	if err != nil {
		return err
	}
	all := make([]N, t.Rows)
	if len(b) != t.Rows*binary.Size(N(0)) {
		return errDamaged
	}
	if _, err := binary.Decode(b, binary.LittleEndian, all); err != nil {
		return errDamaged
	}
	*to = all
	return nil
}

// column reads the numbers and the words of a column, if they are not there.
func (t *table) column(i int) error {
	if err := t.vocabulary(i); err != nil || t.file == nil || t.names[i] != nil {
		return err
	}
	if err := read(t, blockNames+2*i, &t.names[i]); err != nil {
		return err
	}
	if t.Rows > 0 && int(slices.Max(t.names[i])) >= len(t.words[i]) {
		return errDamaged
	}
	return nil
}

// vocabulary reads the words of a column, if they are not there.
func (t *table) vocabulary(i int) error {
	if t.file == nil || t.words[i] != nil {
		return nil
	}
	b, err := t.block(blockNames + 2*i + 1)
	if err != nil {
		return err
	}
	words := []string{}
	for len(b) > 0 {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return errDamaged
		}
		words = append(words, string(b[k:k+int(n)]))
		b = b[k+int(n):]
	}
	t.words[i] = words
	return nil
}

// marks reads what else is known of records, if it is not there.
func (t *table) marks() (err error) {
	if t.file != nil && t.flags == nil {
		if t.flags, err = t.block(blockFlags); err == nil && len(t.flags) != t.Rows {
			err = errDamaged
		}
	}
	return err
}

func (t *table) close() {
	if t.file != nil {
		t.file.Close()
	}
	for _, b := range t.kept {
		spare.Put(b)
	}
	t.kept = nil
}
