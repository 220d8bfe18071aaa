package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
)

// MaxResult bounds one result that a [Store] keeps, in bytes.
const MaxResult = 16 << 20

// A Memory is a [Store] whose jobs end with the process. The zero Memory is empty.
type Memory struct {
	mu  sync.Mutex
	all []*kept // the newest last
}

type kept struct {
	Job
	result gate.Doc
	gone   bool // is forgotten
}

var _ Store = (*Memory)(nil)

// Close forgets all jobs.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = nil
	return nil
}

// find returns the job of an ID; nil if there is none. The caller holds mu.
func (m *Memory) find(id string) *kept {
	if i := m.at(id); i >= 0 {
		return m.all[i]
	}
	return nil
}

func (m *Memory) at(id string) int {
	return slices.IndexFunc(m.all, func(k *kept) bool { return k.ID == id })
}

// AddJob implements [Store].
func (m *Memory) AddJob(_ context.Context, j Job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.find(j.ID) != nil {
		return fmt.Errorf("a job %s exists already", j.ID)
	}
	m.all = append(m.all, &kept{Job: j})
	return nil
}

// EndJob implements [Store].
func (m *Memory) EndJob(_ context.Context, j Job, result gate.Doc) error {
	size := len(result.Raw())
	if size > MaxResult {
		return fmt.Errorf("job %s: %d bytes: %w", j.ID, size, ErrTooLarge)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.find(j.ID); k != nil && !k.Terminal() {
		k.State, k.Code, k.Reason, k.Labels, k.Ended = j.State, j.Code, j.Reason, j.Labels, j.Ended
		k.Size, k.result = int64(size), result
	}
	return nil
}

// RemoveJob implements [Store].
func (m *Memory) RemoveJob(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(k *kept) bool { return k.ID == id })
	return nil
}

// Job implements [Store].
func (m *Memory) Job(ctx context.Context, who gate.Owner, id string) (Job, error) {
	j, _, err := m.JobResult(ctx, who, id)
	return j, err
}

// JobResult implements [Store].
func (m *Memory) JobResult(_ context.Context, who gate.Owner, id string) (Job, gate.Doc, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.find(id)
	if k == nil || k.Owner != who {
		return Job{}, gate.Doc{}, &HandleError{ID: id}
	}
	return k.Job, k.result, nil
}

// Jobs implements [Store].
func (m *Memory) Jobs(_ context.Context, who gate.Owner, after string, limit int) (all []Job, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	end := len(m.all)
	if after != "" {
		if end = m.at(after); end < 0 || m.all[end].Owner != who {
			return nil, &HandleError{ID: after}
		}
	}
	for _, k := range slices.Backward(m.all[:end]) {
		if len(all) == limit {
			break
		}
		if k.Owner == who {
			all = append(all, k.Job)
		}
	}
	return all, nil
}

// AbandonJobs implements [Store].
func (m *Memory) AbandonJobs(_ context.Context, node, boot string, now time.Time, reason string) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.all {
		if k.Node == node && k.Boot != boot && !k.Terminal() {
			k.State, k.Code, k.Reason, k.Ended = Failed, codes.Cancelled, reason, now
			n++
		}
	}
	return n, nil
}

// CountJobs implements [Store].
func (m *Memory) CountJobs(_ context.Context, node string) (c Counts, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.all {
		switch {
		case k.Node != node:
			continue
		case !k.Terminal():
			c.Running++
		case !k.Expired:
			c.Kept++
		}
		c.Bytes += k.Size
	}
	return c, nil
}

// TrimJobs implements [Store].
func (m *Memory) TrimJobs(_ context.Context, node string, now time.Time, b Bounds) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ended []*kept // of the node
	for _, k := range m.all {
		if k.Node != node || !k.Terminal() {
			continue
		}
		if !k.Expires().After(now) {
			k.giveUp()
		}
		if k.gone = k.Expired && !k.Expires().After(now.Add(-b.After)); !k.gone {
			ended = append(ended, k)
		}
	}
	slices.SortStableFunc(ended, func(a, b *kept) int { return a.Ended.Compare(b.Ended) })
	shrink(ended, b.Bytes, func(k *kept) int64 { return k.Size }, (*kept).giveUp)
	slices.SortStableFunc(ended, func(a, b *kept) int { return cmp.Compare(a.turn(), b.turn()) })
	shrink(ended, int64(b.Jobs), (*kept).one, func(k *kept) { k.gone = true })
	m.all = slices.DeleteFunc(m.all, func(k *kept) bool { return k.gone })
	return nil
}

// giveUp gives up an outcome.
func (k *kept) giveUp() { k.Expired, k.Size, k.result = true, 0, gate.Doc{} }

// turn says which jobs are forgotten first: those that have expired.
func (k *kept) turn() int {
	if k.Expired {
		return 0
	}
	return 1
}

// one counts a job that is not forgotten.
func (k *kept) one() int64 {
	if k.gone {
		return 0
	}
	return 1
}

// shrink calls less for the first job of the owner that has most, until all weigh no more than
// most.
func shrink(all []*kept, most int64, weight func(*kept) int64, less func(*kept)) {
	for {
		var sum, heaviest int64
		by, first := make(map[gate.Owner]int64), make(map[gate.Owner]*kept)
		var next *kept
		for _, k := range all {
			w := weight(k)
			if w > 0 && first[k.Owner] == nil {
				first[k.Owner] = k
			}
			sum, by[k.Owner] = sum+w, by[k.Owner]+w
			if by[k.Owner] > heaviest {
				heaviest, next = by[k.Owner], first[k.Owner]
			}
		}
		if sum <= most || next == nil {
			return
		}
		less(next)
	}
}
