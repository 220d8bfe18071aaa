package artifact

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

// What was not used for long goes, and what is too much; to read is to use.
func TestPrune(t *testing.T) {
	c := cache{t.TempDir(), slog.New(slog.DiscardHandler)}
	now := time.Now()
	keep := func(content string, age time.Duration) digest.Digest {
		d := digest.FromString(content)
		c.write(d, []byte(content))
		if err := os.Chtimes(c.path(d), now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		return d
	}
	has := func(d digest.Digest) bool {
		_, err := os.Stat(c.path(d))
		return err == nil
	}
	read, other := keep("read", maxAge-time.Hour), keep("other", maxAge-time.Hour)
	if string(c.read(read, 100)) != "read" {
		t.Fatal("it is not there")
	}
	later := now.Add(2 * time.Hour)
	c.prune(later, 100)
	if !has(read) || has(other) {
		t.Error("by age, kept:", has(read), has(other))
	}
	older, newer := keep("older", time.Hour), keep("newer", -time.Hour)
	c.prune(later, int64(len("newer")))
	if has(read) || has(older) || !has(newer) {
		t.Error("by size, kept:", has(read), has(older), has(newer))
	}
	c.prune(later, 0)
	if !has(newer) {
		t.Error("what was used last is not kept")
	}
}
