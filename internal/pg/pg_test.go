package pg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/database"
)

func TestMain(m *testing.M) { os.Exit(database.Main(m, (*testing.M).Run)) }

func options(url string) Options {
	return Options{URL: url, Secret: bytes.Repeat([]byte{1}, MinSecret), Node: "n1", Boot: "b1", Version: "test", Timeout: time.Minute}
}

func open(t *testing.T, o Options) *DB {
	t.Helper()
	d, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return d
}

// refused returns the error of a database that cannot be opened.
func refused(t *testing.T, o Options, want string) {
	t.Helper()
	d, err := Open(t.Context(), o)
	if err == nil {
		_ = d.Close(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "store: ") {
		t.Errorf("error %v, want %q", err, want)
	}
	if err != nil && strings.Contains(err.Error(), "hidden") {
		t.Errorf("the error shows the password: %v", err)
	}
}

func TestRefused(t *testing.T) {
	s := database.Shared(t)
	url := s.New(t)
	open(t, options(url))
	other := options(url)
	other.Node = "n2"
	for name, tt := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no secret":            {func(o *Options) { o.Secret = nil }, "the secret has 0 bytes"},
		"a short secret":       {func(o *Options) { o.Secret = o.Secret[1:] }, "the secret has 31 bytes"},
		"another secret":       {func(o *Options) { o.Secret = bytes.Repeat([]byte{2}, MinSecret) }, "give all gateways the same secret"},
		"a clock ahead":        {func(o *Options) { o.now = func() time.Time { return time.Now().Add(10 * time.Minute) } }, "10m0s ahead of the database's; set both by NTP"},
		"a clock behind":       {func(o *Options) { o.now = func() time.Time { return time.Now().Add(-10 * time.Minute) } }, "10m0s behind the database's"},
		"no URL":               {func(o *Options) { o.URL = "postgres://u:hidden@%zz/x" }, "cannot be read"},
		"no TLS elsewhere":     {func(o *Options) { o.URL = "postgres://u:hidden@db.example.com/x?sslmode=disable" }, "sslmode=verify-full"},
		"TLS if it likes":      {func(o *Options) { o.URL = "postgres://u:hidden@db.example.com/x" }, "sslmode=verify-full"},
		"TLS with anyone":      {func(o *Options) { o.URL = "postgres://u:hidden@db.example.com/x?sslmode=require" }, "sslmode=verify-full"},
		"a database not there": {func(o *Options) { o.URL = strings.Replace(o.URL, "/test", "/no", 1) }, "create it, or name another one"},
		"nothing there":        {func(o *Options) { o.URL = "postgres://u:hidden@127.0.0.1:1/x" }, "does not answer"},
		"read-only":            {func(o *Options) { o.URL += "&default_transaction_read_only=on" }, "it is read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			o := other
			tt.change(&o)
			refused(t, o, tt.want)
		})
	}
	open(t, other) // nothing of that has spoiled it
}

func TestNewerSchema(t *testing.T) {
	s := database.Shared(t)
	url := s.New(t)
	_ = open(t, options(url)).Close(t.Context())
	s.Do(t, url, "insert into schema_steps (step, by_version) values (99, '9.0.0')")
	refused(t, options(url), "a newer wasmgate has written the schema (step 99")
}

func TestStandby(t *testing.T) {
	refused(t, options(database.Shared(t).Standby(t).URL("postgres")), "it is a standby; name the primary")
}

// Several gateways that find an empty database at once create one schema.
func TestMigrateAtOnce(t *testing.T) {
	url := database.Shared(t).New(t)
	var wg sync.WaitGroup
	for _, node := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			o := options(url)
			o.Node = node
			d, err := Open(t.Context(), o)
			if err != nil {
				t.Error(err)
				return
			}
			if err := d.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// A step that fails leaves the schema as it was.
func TestFailedStep(t *testing.T) {
	url := database.Shared(t).New(t)
	d := open(t, options(url))
	bad := append(append([]string{}, steps...), "create table half (); select 1/0")
	if _, err := d.migrate(t.Context(), bad); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("step %d", len(steps)+1)) {
		t.Errorf("error %v", err)
	}
	if _, err := d.migrate(t.Context(), append(append([]string{}, steps...), "create table half ()")); err != nil {
		t.Error(err)
	}
}

// A gateway has its name for itself, until it gives it back or its lease ends.
func TestLease(t *testing.T) {
	s := database.Shared(t)
	url := s.New(t)
	d := open(t, options(url))
	second := options(url)
	second.Boot, second.patience = "b2", time.Nanosecond
	if _, err := Open(t.Context(), second); err == nil || !strings.Contains(err.Error(), "another gateway runs as node n1; give each a name of its own under store.node") {
		t.Errorf("error %v", err)
	}
	s.Do(t, url, "update nodes set lease_until = clock_timestamp() - interval '1 second'") // it has died, as it seems
	open(t, second)
	lost := make(chan error, 1)
	d.o.Lost = func(err error) { lost <- err }
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Run(t.Context(), func() Sign { return Sign{} }, func(context.Context) {})
	}()
	var taken *errTaken
	if err := <-lost; !errors.As(err, &taken) {
		t.Errorf("the first one: %v", err)
	}
	<-ended
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
	third := options(url) // the first one's end has given nothing of the second one back
	third.Boot, third.patience = "b3", time.Nanosecond
	if _, err := Open(t.Context(), third); err == nil {
		t.Error("two gateways of one name")
	}
}

// finding returns what a check says of one thing.
func finding(t *testing.T, o Options, of string) string {
	t.Helper()
	for _, f := range Check(t.Context(), o) {
		if f.Of == of && f.Err != nil {
			return f.Err.Error()
		} else if f.Of == of {
			return f.Found
		}
	}
	return ""
}

// A check changes nothing, and says of each thing that is wrong what to do.
func TestCheck(t *testing.T) {
	s := database.Shared(t)
	url := s.New(t)
	if got := finding(t, options(url), "schema"); !strings.Contains(got, "the database is empty") {
		t.Errorf("an empty database: %s", got)
	}
	if got := finding(t, options(url), "rights"); got != "the user may create tables" {
		t.Errorf("an empty database: %s", got)
	}
	open(t, options(url))
	for _, f := range Check(t.Context(), options(url)) {
		if f.Err != nil {
			t.Errorf("%s: %v", f.Of, f.Err)
		}
	}
	other := options(url)
	other.Secret = bytes.Repeat([]byte{2}, MinSecret)
	if got := finding(t, other, "secret"); !strings.Contains(got, "give all gateways the same secret") {
		t.Errorf("another secret: %s", got)
	}
	late := options(url)
	late.now = func() time.Time { return time.Now().Add(10 * time.Minute) }
	if got := finding(t, late, "clock"); !strings.Contains(got, "set both by NTP") {
		t.Errorf("another clock: %s", got)
	}
	lax := options(url + "&synchronous_commit=off")
	if got := finding(t, lax, "durability"); !strings.Contains(got, "set synchronous_commit = on") {
		t.Errorf("commits that are lost: %s", got)
	}
	for name, tt := range map[string]struct{ url, want string }{
		"read-only": {url + "&default_transaction_read_only=on", "it is read-only"},
		"a pooler":  {s.Pooled(t, url), "set store.pooled: true"},
		"a standby": {s.Standby(t).URL("postgres"), "it is a standby; name the primary"},
	} {
		if got := finding(t, options(tt.url), "database"); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	s.Do(t, url, "insert into schema_steps (step, by_version) values (99, '9.0.0')")
	if got := finding(t, options(url), "schema"); !strings.Contains(got, "a newer wasmgate") {
		t.Errorf("a newer schema: %s", got)
	}
}

// A user without the right to change tables runs a gateway once their owner has migrated. Until then the error
// says so.
func TestRights(t *testing.T) {
	s := database.Shared(t)
	url := s.New(t)
	s.Do(t, url, "drop role if exists runs; create role runs login; revoke create on schema public from public")
	as := options(strings.Replace(url, "wasmgate@", "runs@", 1))
	if got := finding(t, as, "rights"); !strings.Contains(got, "run `wasmgate store migrate`") {
		t.Errorf("an empty database: %s", got)
	}
	refused(t, as, "the schema is at step 0")
	refused(t, as, "run `wasmgate store migrate` with the URL of the owner of the tables")
	if had, has, err := Migrate(t.Context(), options(url)); err != nil || had != 0 || has != len(steps) {
		t.Fatal(had, has, err)
	}
	if had, _, err := Migrate(t.Context(), options(url)); err != nil || had != len(steps) {
		t.Error(had, err)
	}
	if got := finding(t, as, "rights"); !strings.Contains(got, "lacks rights on approvals, documents, homes, jobs, kv, leases, meta, nodes") {
		t.Errorf("no rights: %s", got)
	}
	refused(t, as, "permission denied")
	s.Do(t, url, "grant select, insert, update, delete on all tables in schema public to runs")
	if got := finding(t, as, "rights"); got != "the user may read and write all tables" {
		t.Errorf("granted: %s", got)
	}
	open(t, as)
	if _, err := Inspect(t.Context(), as); err != nil {
		t.Error(err)
	}
}
