package tools

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/sandbox/tools/tool"
)

var csvQuery = tool.Tool{
	Name:  "csv_query",
	Title: "CSV query",
	Description: "Filters, groups, sorts and cuts a CSV table. The steps run in this order: where, group_by with aggregates, sort, columns, limit. " +
		"Values that both look like numbers are compared as numbers, others as text.",
	InputSchema: []byte(`{"type":"object","properties":{
		"csv":{"type":"string","description":"The table as CSV text."},
		"delimiter":{"type":"string","minLength":1,"maxLength":1,"default":",","description":"The character between fields; a tab for TSV."},
		"header":{"type":"boolean","default":true,"description":"Whether the first row names the columns. If not, they are named 1, 2, 3 and so on."},
		"where":{"type":"array","description":"Conditions that a row must all meet.","items":{"type":"object","properties":{
			"column":{"type":"string"},
			"op":{"type":"string","enum":["eq","ne","lt","le","gt","ge","contains"]},
			"value":{"type":["string","number"]}},
			"required":["column","op","value"],"additionalProperties":false}},
		"group_by":{"type":"array","items":{"type":"string"},"description":"Columns whose equal values make one row of the result."},
		"aggregates":{"type":"array","description":"What to compute for each group, or for all rows without group_by. The new columns are named like sum(price), or count.","items":{"type":"object","properties":{
			"op":{"type":"string","enum":["count","sum","avg","min","max"]},
			"column":{"type":"string","description":"Required but for count."}},
			"required":["op"],"additionalProperties":false}},
		"sort":{"type":"array","description":"Columns to sort by, the most important first.","items":{"type":"object","properties":{
			"column":{"type":"string"},
			"descending":{"type":"boolean","default":false}},
			"required":["column"],"additionalProperties":false}},
		"columns":{"type":"array","items":{"type":"string"},"description":"The columns to return, in this order; all if absent."},
		"limit":{"type":"integer","minimum":0,"maximum":10000,"default":100,"description":"Return at most this many rows."}},
		"required":["csv"],"additionalProperties":false}`),
	OutputSchema: []byte(`{"type":"object","properties":{
		"columns":{"type":"array","items":{"type":"string"},"description":"The names of the columns."},
		"rows":{"type":"array","items":{"type":"array","items":{"type":["string","number","null"]}},"description":"The rows, each with a value for every column. Computed values are numbers, or null where there was nothing to compute from."},
		"total":{"type":"integer","minimum":0,"description":"How many rows there are before limit."}},
		"required":["columns","rows","total"],"additionalProperties":false}`),
	Annotations: []byte(tool.ReadOnly),
	Run:         tool.Typed(runCSVQuery),
}

type csvQueryIn struct {
	CSV        string      `json:"csv"`
	Delimiter  string      `json:"delimiter"`
	Header     *bool       `json:"header"`
	Where      []condition `json:"where"`
	GroupBy    []string    `json:"group_by"`
	Aggregates []aggregate `json:"aggregates"`
	Sort       []sortKey   `json:"sort"`
	Columns    []string    `json:"columns"`
	Limit      *int        `json:"limit"`
}

type condition struct {
	Column string `json:"column"`
	Op     string `json:"op"`
	Value  any    `json:"value"`
}

type aggregate struct {
	Op     string `json:"op"`
	Column string `json:"column"`
}

func (a aggregate) name() string {
	if a.Op == "count" {
		return "count"
	}
	return a.Op + "(" + a.Column + ")"
}

type sortKey struct {
	Column     string `json:"column"`
	Descending bool   `json:"descending"`
}

// A table's cells are strings as read, or float64 or nil as computed.
type table struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
	Total   int      `json:"total"`
}

func runCSVQuery(in csvQueryIn) (table, error) {
	limit, err := tool.Bounded("limit", in.Limit, 100, 0, 10_000)
	if err != nil {
		return table{}, err
	}
	t, err := in.read()
	if err != nil {
		return table{}, err
	}
	if err := t.where(in.Where); err != nil {
		return table{}, err
	}
	if len(in.GroupBy) > 0 || len(in.Aggregates) > 0 {
		if t, err = t.group(in.GroupBy, in.Aggregates); err != nil {
			return table{}, err
		}
	}
	if err := t.sort(in.Sort); err != nil {
		return table{}, err
	}
	t.Total = len(t.Rows)
	t.Rows = t.Rows[:min(limit, len(t.Rows))]
	return t, t.project(in.Columns)
}

func (in csvQueryIn) read() (table, error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(in.CSV, "\ufeff")))
	r.LazyQuotes = true // tables found in the wild are seldom strict
	if in.Delimiter != "" {
		comma, size := utf8.DecodeRuneInString(in.Delimiter)
		if size != len(in.Delimiter) || strings.ContainsRune("\"\r\n\ufffd", comma) {
			return table{}, fmt.Errorf("argument delimiter: %q is not one character that may part fields", in.Delimiter)
		}
		r.Comma = comma
	}
	records, err := r.ReadAll()
	if err != nil {
		return table{}, fmt.Errorf("argument csv: %w", err)
	}
	if len(records) == 0 {
		return table{}, errors.New("argument csv: the table is empty")
	}
	var t table
	if in.Header == nil || *in.Header {
		t.Columns, records = records[0], records[1:]
	} else {
		for i := range records[0] {
			t.Columns = append(t.Columns, strconv.Itoa(i+1))
		}
	}
	t.Rows = make([][]any, len(records))
	for i, record := range records {
		t.Rows[i] = make([]any, len(record))
		for j, cell := range record {
			t.Rows[i][j] = cell
		}
	}
	return t, nil
}

// index finds a column for the named argument.
func (t *table) index(argument, column string) (int, error) {
	i := slices.Index(t.Columns, column)
	if i < 0 {
		return 0, fmt.Errorf("argument %s: there is no column %q; the columns are %q", argument, column, t.Columns)
	}
	return i, nil
}

func (t *table) indexes(argument string, columns []string) ([]int, error) {
	at := make([]int, len(columns))
	for i, c := range columns {
		var err error
		if at[i], err = t.index(argument, c); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// holds says for each operator which orders of cell and value fulfil it.
var holds = map[string]func(order int) bool{
	"eq": func(o int) bool { return o == 0 },
	"ne": func(o int) bool { return o != 0 },
	"lt": func(o int) bool { return o < 0 },
	"le": func(o int) bool { return o <= 0 },
	"gt": func(o int) bool { return o > 0 },
	"ge": func(o int) bool { return o >= 0 },
}

func (t *table) where(conditions []condition) error {
	for _, c := range conditions {
		at, err := t.index("where", c.Column)
		if err != nil {
			return err
		}
		ok, known := holds[c.Op]
		if !known && c.Op != "contains" {
			return fmt.Errorf("argument where: %q is none of eq, ne, lt, le, gt, ge, contains", c.Op)
		}
		t.Rows = slices.DeleteFunc(t.Rows, func(row []any) bool {
			if c.Op == "contains" {
				return !strings.Contains(text(row[at]), text(c.Value))
			}
			return !ok(compare(row[at], c.Value))
		})
	}
	return nil
}

// group makes one row of the rows that are equal in the columns by.
func (t *table) group(by []string, aggregates []aggregate) (table, error) {
	at, err := t.indexes("group_by", by)
	if err != nil {
		return table{}, err
	}
	var order []string
	groups := map[string]*table{}
	for _, row := range t.Rows {
		var key strings.Builder
		for _, i := range at {
			key.WriteString(strconv.Quote(text(row[i]))) // quoted, so that neighbours cannot run together
		}
		g := groups[key.String()]
		if g == nil {
			g = &table{Columns: t.Columns}
			groups[key.String()] = g
			order = append(order, key.String())
		}
		g.Rows = append(g.Rows, row)
	}
	if len(by) == 0 && len(order) == 0 { // no rows at all are one empty group
		order, groups[""] = []string{""}, &table{Columns: t.Columns}
	}
	out := table{Columns: slices.Clone(by)}
	for _, a := range aggregates {
		out.Columns = append(out.Columns, a.name())
	}
	for _, key := range order {
		var row []any
		for _, i := range at {
			row = append(row, groups[key].Rows[0][i])
		}
		for _, a := range aggregates {
			v, err := groups[key].compute(a)
			if err != nil {
				return table{}, err
			}
			row = append(row, v)
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

// compute returns a float64, or nil where there is nothing to compute from.
func (t *table) compute(a aggregate) (any, error) {
	if a.Op == "count" {
		return float64(len(t.Rows)), nil
	}
	at, err := t.index("aggregates", a.Column)
	if err != nil {
		return nil, err
	}
	var values []float64
	sum := 0.0
	for _, row := range t.Rows {
		s := strings.TrimSpace(text(row[at]))
		if s == "" {
			continue
		}
		v, ok := number(s)
		if !ok {
			return nil, fmt.Errorf("argument aggregates: column %q holds %q, which is not a number", a.Column, s)
		}
		values, sum = append(values, v), sum+v
	}
	switch {
	case a.Op == "sum":
		return sum, nil
	case len(values) == 0 && (a.Op == "avg" || a.Op == "min" || a.Op == "max"):
		return nil, nil
	case a.Op == "avg":
		return sum / float64(len(values)), nil
	case a.Op == "min":
		return slices.Min(values), nil
	case a.Op == "max":
		return slices.Max(values), nil
	}
	return nil, fmt.Errorf("argument aggregates: %q is none of count, sum, avg, min, max", a.Op)
}

func (t *table) sort(keys []sortKey) error {
	at := make([]int, len(keys))
	for i, k := range keys {
		var err error
		if at[i], err = t.index("sort", k.Column); err != nil {
			return err
		}
	}
	slices.SortStableFunc(t.Rows, func(a, b []any) int {
		for i, k := range keys {
			o := rank(a[at[i]], b[at[i]])
			if k.Descending {
				o = -o
			}
			if o != 0 {
				return o
			}
		}
		return 0
	})
	return nil
}

// project keeps the named columns; none named keeps all.
func (t *table) project(columns []string) error {
	if t.Rows == nil {
		t.Rows = [][]any{} // an array in JSON, never null
	}
	if len(columns) == 0 {
		return nil
	}
	at, err := t.indexes("columns", columns)
	if err != nil {
		return err
	}
	for i, row := range t.Rows {
		cut := make([]any, len(at))
		for j, from := range at {
			cut[j] = row[from]
		}
		t.Rows[i] = cut
	}
	t.Columns = columns
	return nil
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		b, _ := json.Marshal(v) // a finite number always marshals
		return string(b)
	}
	return ""
}

// number reads decimal numbers only: neither "inf", "nan" nor "0x10", which
// tables use as words.
func number(s string) (float64, bool) {
	if s == "" || strings.Trim(s, "+-.0123456789eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// compare orders two cells: as numbers if both are, else as text.
func compare(a, b any) int {
	if x, y, count := numbers(a, b); count == 2 {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(text(a), text(b))
}

// rank is compare made a total order for sorting: numbers come before text.
func rank(a, b any) int {
	if _, _, count := numbers(a, b); count != 1 {
		return compare(a, b)
	}
	if _, ok := number(strings.TrimSpace(text(a))); ok {
		return -1
	}
	return 1
}

// numbers reads both cells and returns how many of them are numbers.
func numbers(a, b any) (x, y float64, count int) {
	x, okX := number(strings.TrimSpace(text(a)))
	y, okY := number(strings.TrimSpace(text(b)))
	for _, ok := range []bool{okX, okY} {
		if ok {
			count++
		}
	}
	return x, y, count
}
