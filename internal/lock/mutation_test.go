package lock_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// mutations is how many single changes of a definition are tried.
const mutations = 100_000

// TestEveryMutationIsCaught changes one thing at a random place of a pinned
// definition, again and again: only the order of keys may change without notice.
func TestEveryMutationIsCaught(t *testing.T) {
	m := mutator{seed.Rand(t)}
	r := newRig(t, options.PinTrustFirst)
	defs := corpus(t, "benign.jsonl")
	var items []lock.Item
	for _, d := range defs {
		items = append(items, itemOf(d))
	}
	r.connected("s", items...)
	if got := r.callable("s", items...); len(got) != len(items) {
		t.Fatalf("%d of %d definitions are pinned", len(got), len(items))
	}
	tries := mutations
	if testing.Short() {
		tries = min(tries, 10_000)
	}
	for i := range tries {
		def := defs[m.IntN(len(defs))]
		name := def.Get("name").Text()
		changed := m.mutate(t, def)
		other := tool("s", changed)
		other.Local = name // the name is one of the members that are changed
		if r.Check(other) == nil {
			t.Fatalf("not caught:\n%s\nwas\n%s", changed, def)
		}
		if i%50 == 0 {
			if changes, _ := lock.Compare(lock.Tool, def, changed); len(changes) == 0 {
				t.Fatalf("no difference is shown of\n%s\nwas\n%s", changed, def)
			}
		}
		if i%10 == 0 {
			shuffled := m.shuffle(t, def)
			if err := r.Check(tool("s", shuffled)); err != nil {
				t.Fatalf("another order of keys is caught: %v\n%s\nwas\n%s", err, shuffled, def)
			}
			if changes, means := lock.Compare(lock.Tool, def, shuffled); len(changes)+len(means) > 0 {
				t.Fatalf("another order of keys differs: %v %v", changes, means)
			}
		}
	}
	t.Logf("%d mutations caught, and no other order of keys among %d", tries, tries/10)
}

// A mutator changes documents at random.
type mutator struct{ *rand.Rand }

func decode(t testing.TB, d gate.Doc) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(d.Raw()))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// mutate returns the document with one thing changed.
func (m mutator) mutate(t testing.TB, d gate.Doc) gate.Doc {
	t.Helper()
	v := decode(t, d)
	n := m.IntN(count(v))
	b, err := json.Marshal(m.at(v, &n))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := gate.ParseDoc(b)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// count returns how many values there are in v, itself included.
func count(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += count(e)
		}
	case map[string]any:
		for _, e := range v {
			n += count(e)
		}
	}
	return n
}

// at returns v with its n-th value changed.
func (m mutator) at(v any, n *int) any {
	if *n == 0 {
		*n = -1
		return m.change(v)
	}
	*n--
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if *n >= 0 {
				v[i] = m.at(e, n)
			}
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			if *n >= 0 {
				v[k] = m.at(v[k], n)
			}
		}
	}
	return v
}

func sortedKeys(m map[string]any) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// change returns another value than v.
func (m mutator) change(v any) any {
	switch v := v.(type) {
	case string:
		return m.text(v)
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			return v + "1" // 0.5 to 0.51
		}
		return "1" + json.Number(strings.TrimPrefix(string(v), "-"))
	case bool:
		if m.IntN(4) == 0 {
			return map[bool]string{true: "true", false: "false"}[v]
		}
		return !v
	case []any:
		if len(v) > 0 && m.IntN(2) == 0 {
			i := m.IntN(len(v))
			return slices.Delete(v, i, i+1)
		}
		return append(v, "more")
	case map[string]any:
		keys := sortedKeys(v)
		switch {
		case len(keys) == 0 || m.IntN(3) == 0:
			v["x-new"] = nil
		case m.IntN(2) == 0:
			delete(v, keys[m.IntN(len(keys))])
		default:
			k := keys[m.IntN(len(keys))]
			v[k+"\u200b"] = v[k]
			delete(v, k)
		}
		return v
	default:
		return "null"
	}
}

// text returns another text than s.
func (m mutator) text(s string) string {
	r := []rune(s)
	i := m.IntN(len(r) + 1)
	more := []rune{'\u200b', '\u202e', ' ', '\U000e0041', '.', 'е', '\u0301', '\n', '\x1b', '\ufe0f'}[m.IntN(10)]
	switch {
	case i < len(r) && m.IntN(3) == 0:
		return string(slices.Delete(slices.Clone(r), i, i+1))
	case i < len(r) && m.IntN(2) == 0:
		changed := slices.Clone(r)
		if changed[i] ^= 1; changed[i] < ' ' || changed[i] == 0x7f || changed[i] >= 0xd7ff {
			changed[i] = 'x' // no surrogates
		}
		if changed[i] == r[i] {
			changed[i] = 'y'
		}
		return string(changed)
	default:
		return string(slices.Insert(slices.Clone(r), i, more))
	}
}

// shuffle returns the document with the members of its objects in another order.
func (m mutator) shuffle(t testing.TB, d gate.Doc) gate.Doc {
	t.Helper()
	var b bytes.Buffer
	m.write(t, &b, decode(t, d))
	shuffled, err := gate.ParseDoc(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return shuffled
}

func (m mutator) write(t testing.TB, b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteString(" ,")
			}
			m.write(t, b, e)
		}
		b.WriteByte(']')
	case map[string]any:
		keys := sortedKeys(v)
		m.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		b.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				b.WriteByte(',')
			}
			m.write(t, b, k)
			b.WriteByte(':')
			m.write(t, b, v[k])
		}
		b.WriteByte('}')
	default:
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
}
