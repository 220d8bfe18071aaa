package homes

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/postgres"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/database"
)

func TestMain(m *testing.M) { os.Exit(database.Main(m, (*testing.M).Run)) }

// busy is a gateway at which one owner has a session.
type busy struct {
	Gateway
	owner gate.Owner
	gave  []gate.Owner
}

func (b *busy) Uses(of gate.Owner) bool { return of == b.owner }

func (b *busy) HandOver(ctx context.Context, of gate.Owner, give func(ctx context.Context, values map[string][]byte) error) error {
	err := give(ctx, map[string][]byte{"": []byte("values")})
	if err == nil {
		b.gave = append(b.gave, of)
	}
	return err
}

// A home that nothing has used for ten minutes is given up, with its values. Others stay.
func TestIdle(t *testing.T) {
	server := database.Shared(t)
	url := server.New(t)
	var all []*postgres.Store
	for _, node := range []string{"n0", "n1"} {
		s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Secret: bytes.Repeat([]byte{1}, 32), Node: node, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.WithoutCancel(t.Context()))
		all = append(all, s)
	}
	g := &busy{owner: gate.Owner{ID: "connected"}}
	h := &Homes{Store: all[0], Gateway: g, log: slog.New(slog.DiscardHandler)}
	at := func(s *postgres.Store, who, want string) {
		t.Helper()
		if got, err := s.Home(t.Context(), gate.Owner{ID: who}, time.Hour, true); err != nil || got != want {
			t.Errorf("the home of %s is %s, %v, want %s", who, got, err, want)
		}
	}
	for _, who := range []string{"idle", "connected", "busy"} {
		at(all[0], who, "n0")
	}
	server.Do(t, url, "update homes set used = used - interval '9 minutes'")
	h.releaseIdle(t.Context())
	server.Do(t, url, "update homes set used = used - interval '2 minutes' where owner <> 'busy'")
	h.releaseIdle(t.Context())
	if len(g.gave) != 1 || g.gave[0].ID != "idle" {
		t.Errorf("homes of %v were given up", g.gave)
	}
	if rows := server.Do(t, url, "select owner, epoch from session_values"); rows != "idle|2" {
		t.Errorf("values were handed over: %s", rows)
	}
	at(all[1], "idle", "n1")
	at(all[1], "connected", "n0")
	at(all[1], "busy", "n0")
	// A use between the look and the end keeps the home.
	if err := h.release(t.Context(), gate.Owner{ID: "busy"}, idle); !errors.Is(err, postgres.ErrUsed) {
		t.Errorf("a home that was used: %v", err)
	}
}
