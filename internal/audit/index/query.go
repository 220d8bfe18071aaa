package index

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// A Query says which records are wanted. Zero fields want all.
type Query struct {
	Event     gate.Event
	Action    gate.Action
	Call      string    // the records of a call, and of what was asked for on its behalf
	Tool      string    // a name, or a pattern as of [path.Match]
	Server    string    // this and the next: as they are in the log
	Principal string    //
	Session   string    //
	Code      string    //
	Refused   bool      // with a code that begins with refused_
	Text      string    // is part of a tool's, server's, principal's or session's name or of a code, in either case
	Findings  bool      // in which something was found
	Fuel      bool      // of sandboxed tools
	Since     time.Time // at this time or later
	Until     time.Time // before this time
	Before    uint64    // with a smaller number
	Last      int       // only so many, the newest; 0 is all
}

const refused = "refused_"

// check returns an error if the query means nothing.
func (q *Query) check() error {
	if _, err := path.Match(q.Tool, ""); err != nil {
		return fmt.Errorf("tool pattern %q: %w", q.Tool, err)
	}
	return nil
}

func (q *Query) words(e, a, c, srv, t, p, s string) bool {
	tool := q.Tool == ""
	if !tool && t != "" {
		tool, _ = path.Match(q.Tool, t)
	}
	is := func(want, have string) bool { return want == "" || want == have }
	return tool && is(string(q.Event), e) && is(string(q.Action), a) && is(q.Code, c) && is(q.Server, srv) && is(q.Principal, p) && is(q.Session, s) &&
		(!q.Refused || strings.HasPrefix(c, refused)) && (q.Text == "" || contains(q.Text, t, srv, p, s, c))
}

func contains(part string, names ...string) bool {
	part = strings.ToLower(part)
	for _, n := range names {
		if strings.Contains(strings.ToLower(n), part) {
			return true
		}
	}
	return false
}

// matches reports whether a record of the log is wanted, whatever the index says.
func (q *Query) matches(e *audit.Entry) bool {
	return q.words(string(e.Event), string(e.Action), e.Code, e.Server, e.Tool, e.Principal, e.Session) &&
		(q.Call == "" || q.Call == e.ID || q.Call == e.Parent) &&
		(!q.Findings || len(e.Findings) > 0) && (!q.Fuel || e.Fuel > 0) &&
		(q.Since.IsZero() || !e.Time.Before(q.Since)) && (q.Until.IsZero() || e.Time.Before(q.Until)) && (q.Before == 0 || e.Seq < q.Before)
}

// Find returns the records that are wanted, the newest first, and how much of the log was
// looked at.
func (x *Index) Find(ctx context.Context, q Query) (all []audit.Entry, p Progress, err error) {
	if err := q.check(); err != nil {
		return nil, p, err
	}
	for range 3 { // again if what was found is not what the log has
		var again bool
		if all, again, err = x.find(ctx, &q); !again || err != nil {
			break
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return all, x.progress(), err
}

func (x *Index) find(ctx context.Context, q *Query) (all []audit.Entry, again bool, err error) {
	most := cmp.Or(q.Last, math.MaxInt)
	for _, v := range x.views() {
		var from *reader
		for i := len(v.parts) - 1; i >= 0 && len(all) < most; i-- {
			if err := ctx.Err(); err != nil {
				return nil, false, err
			}
			rows, t, err := v.parts[i].hits(q, most-len(all))
			if err == nil && len(rows) > 0 {
				var found []audit.Entry
				found, from, err = records(v.name, from, t, rows)
				for _, e := range found {
					if q.matches(&e) {
						all = append(all, e)
					}
				}
			}
			if errors.Is(err, errDamaged) {
				x.drop(v)
				again = true
				break
			}
			if err != nil {
				return all, false, err
			}
		}
		if from != nil {
			from.Close()
		}
	}
	return all, again, nil
}

// drop begins the index of a file anew, unless it was only renamed meanwhile.
func (x *Index) drop(v view) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refresh()
	if slices.Contains(x.files, v.file) && v.file.name == v.name {
		x.forget(v.file)
	}
}

// A view is what is known of a file at one moment.
type view struct {
	file  *file
	name  string
	parts []part // the oldest first
}

// A part is a segment, or rows that are in none yet.
type part struct {
	segment *segment
	rows    *table
}

// views returns what is known of all files, the newest first, once the newest records are
// indexed, if that is soon.
func (x *Index) views() (all []view) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for began := time.Now(); x.step(false) && time.Since(began) < catchUp; {
	}
	for _, f := range x.files {
		v := view{file: f, name: f.name}
		for _, s := range f.segments {
			v.parts = append(v.parts, part{segment: s})
		}
		if f.made != nil {
			rows := *f.made // what is added later is behind its ends
			v.parts = append(v.parts, part{rows: &rows})
		}
		all = append(all, v)
	}
	return all
}

// open returns a part's table, and reads no more of it than the query needs; nil if no row of it can
// match. The caller closes it.
func (p part) open(q *Query) (*table, error) {
	h := &head{}
	if p.rows != nil {
		h = &p.rows.head
	} else {
		h = &p.segment.head
	}
	if !q.Since.IsZero() && h.Until < q.Since.UnixMicro() || !q.Until.IsZero() && h.Since >= q.Until.UnixMicro() ||
		q.Before > 0 && h.First >= q.Before || h.Until < q.made() {
		return nil, nil
	}
	if p.rows != nil {
		return p.rows, nil
	}
	return p.segment.table()
}

// made is when the call that is wanted was made, at the earliest: its ID says so (RFC 9562,
// UUIDv7).
func (q *Query) made() int64 {
	const slack = time.Minute // of clocks
	hex := strings.ReplaceAll(q.Call, "-", "")
	if len(hex) != 32 || hex[12] != '7' {
		return math.MinInt64
	}
	var ms int64
	if _, err := fmt.Sscanf(hex[:12], "%x", &ms); err != nil {
		return math.MinInt64
	}
	return time.UnixMilli(ms).Add(-slack).UnixMicro()
}

// hits returns the last rows of a part that may be wanted, the newest first, and where they are.
func (p part) hits(q *Query, most int) (rows []int, t *table, err error) {
	if t, err = p.open(q); t == nil || err != nil {
		return nil, nil, err
	}
	defer t.close()
	if err := t.choose(q, func(i int) bool {
		rows = append(rows, i)
		return len(rows) < most
	}); err != nil || len(rows) == 0 {
		return nil, nil, err
	}
	return rows, t, errors.Join(read(t, blockPlace, &t.places), read(t, blockSeq, &t.seqs))
}

// choose visits the rows that may be wanted, the newest first, until visit returns false.
func (t *table) choose(q *Query, visit func(i int) bool) error {
	var conditions []func(i int) bool
	where := func(c func(i int) bool) { conditions = append(conditions, c) }
	named, err := t.named(q)
	if named == nil || err != nil {
		return err
	}
	for _, wishes := range named {
		met, err := t.meets(wishes)
		if err != nil {
			return err
		}
		where(met)
	}
	if err := t.numbers(q, where); err != nil {
		return err
	}
rows:
	for i := t.Rows - 1; i >= 0; i-- {
		for _, c := range conditions {
			if !c(i) {
				continue rows
			}
		}
		if !visit(i) {
			return nil
		}
	}
	return nil
}

// wants are the conditions on single columns.
func (q *Query) wants() (all [columns]func(string) bool) {
	is := func(i int, want string) {
		if want != "" {
			all[i] = func(w string) bool { return w == want }
		}
	}
	is(event, string(q.Event))
	is(action, string(q.Action))
	is(server, q.Server)
	is(principal, q.Principal)
	is(session, q.Session)
	is(code, q.Code)
	if q.Refused {
		all[code] = func(w string) bool { return strings.HasPrefix(w, refused) && (q.Code == "" || q.Code == w) }
	}
	if q.Tool != "" {
		all[tool] = func(w string) bool { ok, _ := path.Match(q.Tool, w); return ok && w != "" }
	}
	return all
}

// A wish is which words of a column are wanted.
type wish struct {
	column int
	good   []bool
}

// named returns the conditions on names: a row matches if it fulfills one wish of each. It returns nil
// if no row can match, which the vocabulary alone shows: most segments do not contain a rare name.
func (t *table) named(q *Query) ([][]wish, error) {
	all := [][]wish{}
	add := func(wants func(string) bool, columns ...int) (any bool, err error) {
		var one []wish
		for _, i := range columns {
			if err := t.vocabulary(i); err != nil {
				return false, err
			}
			good := make([]bool, len(t.words[i]))
			for n, w := range t.words[i] {
				good[n] = wants(w)
			}
			if slices.Contains(good, true) {
				one = append(one, wish{i, good})
			}
		}
		all = append(all, one)
		return one != nil, nil
	}
	for i, wants := range q.wants() {
		if wants == nil {
			continue
		}
		if any, err := add(wants, i); err != nil || !any {
			return nil, err
		}
	}
	if q.Text != "" {
		if any, err := add(func(w string) bool { return contains(q.Text, w) }, tool, server, principal, session, code); err != nil || !any {
			return nil, err
		}
	}
	return all, nil
}

// meets returns whether one of the wishes comes true for a row.
func (t *table) meets(wishes []wish) (func(row int) bool, error) {
	for _, w := range wishes {
		if err := t.column(w.column); err != nil {
			return nil, err
		}
	}
	return func(row int) bool {
		for _, w := range wishes {
			if w.good[t.names[w.column][row]] {
				return true
			}
		}
		return false
	}, nil
}

// numbers are the conditions on times, numbers, ids and marks.
func (t *table) numbers(q *Query, where func(func(int) bool)) error {
	since, until := int64(math.MinInt64), int64(math.MaxInt64)
	if !q.Since.IsZero() {
		since = q.Since.UnixMicro()
	}
	if !q.Until.IsZero() {
		until = q.Until.UnixMicro()
	}
	if t.Since < since || t.Until >= until {
		if err := read(t, blockTime, &t.times); err != nil {
			return err
		}
		where(func(i int) bool { return t.times[i] >= since && t.times[i] < until })
	}
	if q.Before > 0 && t.Last >= q.Before {
		if err := read(t, blockSeq, &t.seqs); err != nil {
			return err
		}
		where(func(i int) bool { return t.seqs[i] < q.Before })
	}
	if q.Call != "" {
		want := sum([]byte(q.Call))
		is, err := t.same(blockID, t.ids, want)
		of, other := t.same(blockParent, t.parent, want)
		if err := errors.Join(err, other); err != nil {
			return err
		}
		where(func(i int) bool { return is(i) || of(i) })
	}
	var marks byte
	if q.Findings {
		marks |= hasFindings
	}
	if q.Fuel {
		marks |= hasFuel
	}
	if marks > 0 {
		if err := t.marks(); err != nil {
			return err
		}
		where(func(i int) bool { return t.flags[i]&marks == marks })
	}
	return nil
}

// records reads rows of a file of the log, given and returned the newest first. If a record is not
// where the index says, the error is errDamaged. From is open at the file, or nil.
func records(name string, from *reader, t *table, rows []int) ([]audit.Entry, *reader, error) {
	all := make([]audit.Entry, len(rows))
	for k := len(rows) - 1; k >= 0; k-- { // forwards, as the file is read
		at := t.From + int64(t.places[rows[k]])
		var err error
		if from, err = seek(name, from, at); err != nil {
			return nil, from, fmt.Errorf("%w: %w", errDamaged, err)
		}
		line, err := from.whole()
		if err != nil {
			return nil, from, fmt.Errorf("%w: %w", errDamaged, err)
		}
		if err := json.Unmarshal(line, &all[k]); err != nil || all[k].Seq != t.seqs[rows[k]] {
			return nil, from, errDamaged
		}
		all[k].Raw = line
	}
	return all, from, nil
}

// A Row is what the index itself knows about a record: enough to count, and no more.
type Row struct {
	Time                                          time.Time
	Action, Code, Server, Tool, Tenant, Principal string
	Roles                                         string // an array of JSON; "" for none
}

// Each visits what the index has of the records that are wanted, the newest first, until visit
// returns false. The log is not read.
func (x *Index) Each(ctx context.Context, q Query, visit func(Row) bool) (Progress, error) {
	if err := q.check(); err != nil {
		return Progress{}, err
	}
	left := cmp.Or(q.Last, math.MaxInt)
	for _, v := range x.views() {
		for i := len(v.parts) - 1; i >= 0 && left > 0; i-- {
			err := ctx.Err()
			if err == nil {
				err = v.parts[i].each(&q, func(r Row) bool {
					if left--; !visit(r) {
						left = 0
					}
					return left > 0
				})
			}
			if errors.Is(err, errDamaged) {
				x.drop(v)
				break
			}
			if err != nil {
				return Progress{}, err
			}
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.progress(), nil
}

func (p part) each(q *Query, visit func(Row) bool) error {
	t, err := p.open(q)
	if t == nil || err != nil {
		return err
	}
	defer t.close()
	if err := read(t, blockTime, &t.times); err != nil {
		return err
	}
	for _, i := range []int{action, code, server, tool, tenant, principal, roles} {
		if err := t.column(i); err != nil {
			return err
		}
	}
	word := func(i, row int) string { return t.words[i][t.names[i][row]] }
	return t.choose(q, func(i int) bool {
		return visit(Row{time.UnixMicro(t.times[i]), word(action, i), word(code, i), word(server, i), word(tool, i), word(tenant, i), word(principal, i), word(roles, i)})
	})
}
