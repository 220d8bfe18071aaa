package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmgate/wasmgate/sandbox/internal/image"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
	"github.com/wasmgate/wasmgate/sandbox/internal/turns"
)

// prepare returns the module's snapshot, which the first call takes, whose own time
// begins after that. A failure is not kept: the next call tries again. The result has
// the figures of a failure.
func (c *call) prepare() (*snapshot, Result, error) {
	m := c.module
	if s := m.snapshot.Load(); s != nil {
		return s, Result{}, nil
	}
	if err := c.awaitSnapshot(); err != nil {
		return nil, Result{}, c.busy(err)
	}
	defer func() { <-m.preparing }()
	if s := m.snapshot.Load(); s != nil {
		return s, Result{}, nil
	}
	s, res, err := m.take(c.parent, c.tool, c.turn)
	if err == nil {
		m.snapshot.Store(s)
	}
	c.begin()
	return s, res, err
}

// awaitSnapshot waits to be the one that takes the snapshot, in which time others have its slot.
func (c *call) awaitSnapshot() error {
	select {
	case c.module.preparing <- struct{}{}:
		return nil
	default:
	}
	c.turn.Leave()
	select {
	case c.module.preparing <- struct{}{}:
	case <-c.Done():
		return c.Err()
	}
	err := c.turn.Enter(c)
	if err != nil {
		<-c.module.preparing
	}
	return err
}

// take takes the snapshot. As far as code of the module runs for it, it runs
// under the limits of a call, and without a host.
func (m *Module) take(ctx context.Context, tool string, slot *turns.Turn) (_ *snapshot, res Result, err error) {
	if m.sealed == nil { // its instances begin empty
		i, err := image.NewWith(m.runtime.method, nil, m.minMemory)
		return &snapshot{image: i}, res, err
	}
	c := newCall(ctx, m, tool, nil, CallConfig{}, m.limits)
	c.turn = slot
	c.begin()
	defer c.finish(&res, &err)
	in, err := m.first(c)
	if err != nil {
		return nil, res, c.outcome(err)
	}
	defer in.close(context.WithoutCancel(ctx))
	defer c.measure(in)
	if err := c.advance(in); err != nil {
		return nil, res, c.outcome(err)
	}
	s, err := in.snapshot(m.runtime.method)
	return s, res, err
}

// first returns an instance as instantiation leaves it, without a snapshot.
func (m *Module) first(c *call) (*instance, error) {
	var content []byte
	if m.sealed != nil {
		content = m.sealed.Memory
	}
	i, err := image.NewWith(image.Copy, content, m.minMemory)
	if err != nil {
		return nil, err
	}
	memory, err := i.NewMemory(m.limits.Memory)
	if err != nil {
		return nil, err
	}
	in, err := m.instantiate(c, memory)
	if err != nil {
		return nil, c.failure("it does not start", err)
	}
	return in, nil
}

// advance brings a new instance to the module's snapshot point.
func (c *call) advance(in *instance) error {
	if c.module.point == SnapshotInst {
		return nil
	}
	if err := c.initialize(in); err != nil || c.module.point == SnapshotInit {
		return err
	}
	sample := c.module.warm
	c.tool, c.args = sample.Tool, sample.Arguments
	if len(c.args) == 0 {
		c.args = []byte("{}")
	}
	if _, err := c.serve(in); err != nil {
		return fmt.Errorf("the sample call: %w", err)
	}
	return nil
}

// acquire returns an instance in the state of the snapshot.
func (m *Module) acquire(c *call, s *snapshot) (*instance, error) {
	if m.isolation == IsolationCall && m.sealed != nil {
		if in, ok := m.instances.take(); ok {
			in.user, c.instance = c, in
			return in, nil
		}
	}
	memory, ok := m.memories.take()
	if !ok {
		var err error
		if memory, err = s.image.NewMemory(m.limits.Memory); err != nil {
			return nil, err
		}
	}
	in, err := m.instantiate(c, memory)
	if err != nil {
		return nil, errors.Join(c.failure("it does not start", err), memory.Close())
	}
	if m.sealed == nil {
		return in, nil
	}
	in.user = nil
	err = in.enlarge(s.image.Size())
	in.user = c
	if err != nil {
		return nil, errors.Join(err, in.close(c).Close())
	}
	in.load(s.globals)
	return in, nil
}

// release puts an instance back into the pool, or the part that can be used again.
func (m *Module) release(ctx context.Context, in *instance, s *snapshot, intact bool) {
	in.user = nil
	if m.isolation == IsolationCall && m.sealed != nil && intact && in.reset(s) == nil && m.instances.keep(in) {
		return
	}
	memory := in.close(context.WithoutCancel(ctx))
	if intact && memory.Reset() == nil && m.memories.keep(memory) {
		return
	}
	_ = memory.Close() // only unmaps
}

// instantiate makes an instance for c, of a memory that is as the image. A
// module that is not sealed runs its start function here.
func (m *Module) instantiate(c *call, memory *image.Memory) (_ *instance, err error) {
	in := &instance{least: uint64(m.minMemory), memory: memory, user: c, functions: map[string]api.Function{}}
	c.instance = in
	memory.Grow = in.grow
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	ctx := experimental.WithMemoryAllocator(c, allocator{memory})
	if in.mod, err = m.runtime.engine.InstantiateModule(ctx, m.compiled, config); err != nil {
		return nil, err
	}
	in.fuel = globalsOf(in.mod)
	for i := range m.sealedGlobals() {
		in.globals = append(in.globals, in.mod.ExportedGlobal(rewrite.GlobalName(i)).(api.MutableGlobal))
	}
	return in, nil
}
