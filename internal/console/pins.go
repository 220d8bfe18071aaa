package console

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/wasmgate/wasmgate/internal/app/pins"
	"github.com/wasmgate/wasmgate/internal/lock"
)

// pinHandlers serve the pins of servers, and approve of changes.
type pinHandlers struct {
	*frame
	pins *pins.Pins
}

func (h *pinHandlers) getPins(w http.ResponseWriter, r *http.Request) error {
	pins, err := h.pins.List(r.Context(), "")
	return answer(w, pins, err)
}

// difference is how a server differs from what was approved. Seen names that state.
type difference struct {
	Server      string            `json:"server"`
	Seen        string            `json:"seen"`
	Differences []lock.Difference `json:"differences"`
}

func (h *pinHandlers) difference(ctx context.Context, server string) (d difference, pins []lock.Pin, err error) {
	review, err := h.pins.Review(ctx, server)
	if errors.Is(err, lock.ErrNothing) {
		err = &missing{"pinned server " + server}
	}
	if err != nil {
		return d, nil, err
	}
	seen := ""
	for _, p := range review.Approval {
		seen += p.String() + " " + p.Digest + "\n"
	}
	return difference{server, fmt.Sprintf("%x", sha256.Sum256([]byte(seen))), review.Differences}, review.Approval, nil
}

func (h *pinHandlers) getDiff(w http.ResponseWriter, r *http.Request) error {
	d, _, err := h.difference(r.Context(), r.PathValue("server"))
	return answer(w, d, err)
}

// approvePins approves of what a server declares now, if it is what was seen.
func (h *pinHandlers) approvePins(ctx context.Context, server, seen string) ([]lock.Pin, error) {
	d, pins, err := h.difference(ctx, server)
	if err != nil {
		return nil, err
	}
	if d.Seen != seen {
		return nil, &conflict{"what server " + server + " declares"}
	}
	return h.pins.Approve(ctx, pins, by(ctx).ID)
}

func (h *pinHandlers) postPins(w http.ResponseWriter, r *http.Request) error {
	var asked struct {
		Seen string `json:"seen"`
	}
	if err := read(r, &asked); err != nil {
		return err
	}
	added, err := h.approvePins(r.Context(), r.PathValue("server"), asked.Seen)
	return answer(w, map[string]any{"approved": append([]lock.Pin{}, added...)}, err)
}

func (h *pinHandlers) pinsPage(w http.ResponseWriter, r *http.Request) error {
	all, err := h.pins.List(r.Context(), "")
	if err != nil {
		return h.show(w, r, "pins", "Pins", map[string]any{"Off": err.Error()})
	}
	var waiting []difference
	for _, server := range servers(all.Pins) {
		d, pins, err := h.difference(r.Context(), server)
		if err != nil {
			return err
		}
		if d.Differences = slices.DeleteFunc(d.Differences, func(d lock.Difference) bool { return !d.State.Quarantined() }); len(d.Differences) > 0 && len(pins) > 0 {
			waiting = append(waiting, d)
		}
	}
	return h.show(w, r, "pins", "Pins", map[string]any{"Pins": all, "Servers": byServer(all.Pins), "Waiting": waiting})
}

func (h *pinHandlers) approvePage(w http.ResponseWriter, r *http.Request) error {
	server := r.PathValue("server")
	added, err := h.approvePins(r.Context(), server, r.PostFormValue("seen"))
	if err != nil {
		return err
	}
	return h.done(w, r, "/ui/pins", fmt.Sprintf("%d definitions of %s are approved", len(added), server))
}

// servers returns the ids of the servers with something quarantined.
func servers(pins []lock.Entry) (ids []string) {
	for _, e := range pins {
		if e.State.Quarantined() && !slices.Contains(ids, e.Server) {
			ids = append(ids, e.Server)
		}
	}
	return ids
}

// pinned are the pins of one server.
type pinned struct {
	Server      string
	Pins        []lock.Entry
	Quarantined int
}

// byServer divides pins, which are sorted by server.
func byServer(pins []lock.Entry) (all []pinned) {
	for _, e := range pins {
		if len(all) == 0 || all[len(all)-1].Server != e.Server {
			all = append(all, pinned{Server: e.Server})
		}
		last := &all[len(all)-1]
		last.Pins = append(last.Pins, e)
		if e.State.Quarantined() {
			last.Quarantined++
		}
	}
	return all
}
