package rewrite

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// An estimator adds up what the functions of a module cost. It follows what the
// engine does: each local variable is looked up from where it is read back to
// where it was written, through all blocks between, and is a parameter of those
// with several ways in if it was written on one of them; each value that lives
// at the beginning of a block is noted there.
type estimator struct {
	module *Module
	all    expenses
	most   [Workers]int64 // memory of the functions that take most

	// Of the function that is read.
	expenses
	count   [classes]int64 // of instructions
	frames  []frame
	vars    []variable
	touched []touch
	height  int64 // of the operand stack
	known   int64 // addresses known to be within memory
	globals int64 // uses of globals
	chain   int64 // blocks with one way in, one behind the other, up to here
	depth   int64 // blocks that dominate this one: the engine climbs through them to look for loops
	backs   int64 // branches back to loops
	flow    int64 // what a variable has cost that lives from the beginning on to here
	path    int64 // blocks through which a variable is looked up on all ways into blocks of several, up to here
	walked  int64 // path, when memory or a global was used last
	dead    bool  // this is behind a branch and not reached
	merges  []merging
	ended   int64  // variables that are not looked up through the next merge, but through the last
	loops   int64  // that are open
	deepest int64  // most of them
	labels  []byte // of a br_table: how many, and each
	over    bool   // the budget is spent
	odd     bool   // the operand stack is not as high as a block says
}

// A frame is a block, loop or if that is open, or the function.
type frame struct {
	op      byte
	shape   shape
	dead    bool  // it is not reached itself
	height  int64 // of the operand stack below its parameters
	ways    int64 // into its end, so far; of a loop, back to its beginning
	walk    int64 // chains of all of them together
	known   int64 // at the way in with the fewest
	chain   int64 // at the only way in
	flow    int64 // at its beginning
	above   int64 // depth, at its beginning
	shallow int64 // least depth at a way into its end
	first   int64 // ways into its end from the first half of an if
	before  int64 // known, at its beginning
	links   int64 // chain, at its beginning
	merge   int   // of a loop, that of its beginning
	touched int   // where its touches begin
}

// A merging is a block with several ways in, which has a value from each for every
// variable that is looked up through it.
type merging struct {
	flow int64 // there
	ways int64
	more int64 // by how many variables there are more than at the one before
}

// A variable is what is known of a local variable.
type variable struct {
	seen    int64 // flow when it was read or written last on every way to here
	backs   int64 // branches back to loops, then
	paid    int64 // of the flow, so far
	walked  int64 // of the path, so far
	touch   int   // the last of it
	through int64 // the flow up to which the merges are known through which it is looked up
	pending int64 // ways into blocks behind which it can have several values, since it was read
}

// A touch says what is done with a variable within a frame.
type touch struct {
	variable int32
	set      bool // it is written
	passed   bool // what it was before the frame is read
	last     int  // the variable as it was before
	seen     int64
	through  int64
}

// begin begins a function with so many local variables, parameters included.
func (e *estimator) begin(s shape, locals uint32) {
	e.expenses, e.count = expenses{}, [classes]int64{}
	e.height, e.known, e.globals, e.chain, e.depth, e.backs, e.flow, e.dead, e.over = 0, 0, 0, 0, 0, 0, 0, false, false
	e.odd, e.path, e.walked = false, 0, 0
	e.touched, e.merges, e.ended, e.loops, e.deepest = e.touched[:0], e.merges[:0], 0, 0, 0
	n := int(locals) + 2
	if cap(e.vars) < n {
		e.vars = make([]variable, n)
	}
	e.vars = e.vars[:n]
	for i := range e.vars {
		e.vars[i] = variable{touch: -1}
	}
	e.frames = append(e.frames[:0], frame{shape: shape{results: s.results}, known: math.MaxInt64, shallow: math.MaxInt64})
	e.pay(forInstructions, codeFunction, int64(locals)*memoryLookup)
	e.steps[forInstructions] += stepsFunction
	e.steps[forGlobals] += int64(len(e.module.Imports)) + int64(e.module.globals)
	e.settle()
}

// end ends a function, of so many bytes and with such an index in the module.
func (e *estimator) end(bytes int, index uint32) error {
	for c, n := range e.count {
		e.pay(forInstructions, n*perClass[c].code, n*perClass[c].memory)
		e.steps[forInstructions] += n * perClass[c].steps
	}
	e.lookups()
	f := e.sum()
	e.all.add(&e.expenses)
	if f.Memory > e.most[0] {
		e.most[0] = f.Memory
		slices.Sort(e.most[:])
	}
	if err := perFunction.within(f, bytes, int(index), &e.expenses); err != nil {
		return err
	}
	if n := e.count[accesses] + e.count[vectors]; n > mostLong {
		return &CostError{fmt.Sprintf("function %d has %d loads, stores and vector instructions, more than %d", index, n, mostLong)}
	}
	return nil
}

// lookups adds what it takes to find out which variables have one value only at a merge: for
// each, all are looked at on each way in, and all over again as long as there are fewer
// of them, from the innermost of nested loops to the outermost.
func (e *estimator) lookups() {
	variables := int64(0)
	for _, m := range e.merges {
		variables += m.more
		n := min(variables, int64(len(e.vars)))
		if e.steps[forLocals] += n * n * m.ways * (1 + e.deepest) / lookupsPerStep; e.steps[forLocals] > perFunction.most.Steps {
			return // it is refused anyway
		}
	}
}

// through notes that a variable is looked up through the merges between two places in the flow.
// Those up to a third place, known, are known already.
func (e *estimator) through(from, to, known int64) {
	if from = max(from, known); from >= to {
		return
	}
	first, _ := slices.BinarySearchFunc(e.merges, from+1, func(m merging, flow int64) int { return cmp.Compare(m.flow, flow) })
	last, _ := slices.BinarySearchFunc(e.merges, to+1, func(m merging, flow int64) int { return cmp.Compare(m.flow, flow) })
	if first == last {
		return
	}
	e.merges[first].more++
	if last < len(e.merges) {
		e.merges[last].more--
	} else {
		e.ended++
	}
}

// cost returns what a module costs whose functions have so many bytes, with what the
// rewriting adds: a gate for each imported function, RunFunction, and what moves memory in pieces.
func (e *estimator) cost(bytes, pieces int, runs bool) (Cost, error) {
	for i, t := range e.module.functions[:e.module.imported] {
		values := e.module.shape(t).values()
		e.all.pay(forCalls, codeFunction+codeGate+2*values*codeMoved, memoryFunction)
		if e.module.again(uint32(i)) {
			e.all.pay(forCalls, codeGate, memoryFunction)
		}
	}
	if runs {
		e.all.pay(forCalls, codeFunction+codeGate, memoryFunction)
	}
	e.all.pay(forCalls, codeFunction+codeGate, memoryFunction) // what asks the meter
	e.all.pay(forInstructions, int64(pieces)*codePiece, 0)
	for i, results := range e.module.results {
		values := e.module.shape(uint32(i)).values()
		if results > 1 { // a block leaves them
			values += int64(results)
		}
		e.all.pay(forTypes, codeType+values*codeTyped, values*memoryTyped)
		e.all.steps[forTypes] += values * stepsTyped
	}
	c := e.all.sum()
	c.Memory = memoryOfCode*c.Code + memoryFunction*int64(len(e.module.functions)) + e.all.memory[forTypes]
	for _, most := range e.most {
		c.Memory += most
	}
	return c, perModule.within(c, bytes, theModule, &e.all)
}

// move adds what it costs to pass so many values.
func (e *estimator) move(c cause, values int64) {
	e.pay(c, values*codeMoved, values*memoryMoved)
}

// block begins another basic block: everything that lives is noted there, and
// what the way in has in other registers is moved.
func (e *estimator) block() {
	e.pay(forBlocks, codeBranch, memoryBlock)
	e.pay(forStack, 0, max(e.height, 0)*memoryLive+e.known*(memoryLive+memoryBound))
	e.pay(forGlobals, 0, min(e.globals, int64(e.module.globals))*memoryLive)
	e.flow += memoryLive
	e.chain++
	e.depth++
	e.steps[forBlocks] += 2 * stepsClimb * e.depth // from it, and from the way in
}

// merge begins a block with so many ways in, which may be only one, through so long chains of
// blocks.
func (e *estimator) merge(ways, walk int64) {
	e.block()
	if ways > 1 {
		e.flow += memoryLookup
		e.path += walk
		e.chain = 0
		e.merges = append(e.merges, merging{e.flow, ways, -e.ended})
		e.ended = 0
	}
}

// look is what the rewriting adds where a guest comes to its meter.
func (e *estimator) look() {
	e.pay(forInstructions, codeCall, 8*memoryPlain)
	e.reload()
	e.steps[forCalls] += int64(len(e.module.Imports)) // which the engine counts through
}

// settle is what the rewriting adds where it charges: a look in an if.
func (e *estimator) settle() {
	e.look()
	above := e.depth
	e.block()
	e.block()
	e.depth = above
	e.merge(2, 2*e.chain)
	e.move(forLocals, 4)
}

// exit is what the rewriting adds where a loop is left.
func (e *estimator) exit() {
	e.pay(forBlocks, codeBranch+codePlain, 4*memoryPlain)
	e.block()
}

// reload is what follows every call.
func (e *estimator) reload() {
	e.pay(forGlobals, 0, int64(e.module.mutable)*memoryGlobal)
	e.steps[forGlobals] += int64(e.module.mutable)
}

// target returns the frame that a branch is to, nil if there is none: the engine
// refuses that.
func (e *estimator) target(label uint32) *frame {
	if int64(label) >= int64(len(e.frames)) {
		return nil
	}
	return &e.frames[len(e.frames)-1-int(label)]
}

// carried is how many values a branch carries.
func (e *estimator) carried(label uint32) int64 {
	switch f := e.target(label); {
	case f == nil:
		return 0
	case f.op == opLoop:
		return int64(f.shape.params)
	default:
		return int64(f.shape.results)
	}
}

// branch is a way to the end of a frame, or to the beginning of a loop.
func (e *estimator) branch(label uint32) {
	f, values := e.target(label), e.carried(label)
	if f == nil {
		return
	}
	if f.op == opLoop {
		e.backs++
	}
	f.way(e)
	e.pay(forBlocks, codeBranch, 2*memoryPlain)
	e.move(forBlocks, values)
	e.pay(forBlocks, codeRegisters, 0)
	e.steps[forBlocks] += values * values
}

// way notes one way into the end of a frame.
func (f *frame) way(e *estimator) {
	f.ways++
	f.walk += e.chain
	f.chain = e.chain
	f.known = min(f.known, e.known)
	f.shallow = min(f.shallow, e.depth)
	e.steps[forBlocks] += 3 * stepsClimb * e.depth // once for the loops, twice to where the ways part
}

// open begins a block, loop or if.
func (e *estimator) open(in *instruction) {
	s := in.shape
	f := frame{op: in.op, shape: s, dead: e.dead, height: e.height - int64(s.params), known: math.MaxInt64, shallow: math.MaxInt64, above: e.depth, before: e.known, links: e.chain, touched: len(e.touched)}
	if e.dead {
		e.frames = append(e.frames, f)
		return
	}
	e.move(forBlocks, s.values())
	e.steps[forBlocks] += s.values() * stepsCarried
	switch in.op {
	case opIf:
		e.block()
	case opLoop:
		e.merge(2, e.chain)
		f.merge = len(e.merges) - 1
		e.loops++
		e.deepest = max(e.deepest, e.loops)
	}
	f.flow = e.flow
	e.frames = append(e.frames, f)
	if in.op == opLoop {
		e.settle()
	}
}

// otherwise begins the second half of an if.
func (e *estimator) otherwise() {
	f := &e.frames[len(e.frames)-1]
	if f.dead {
		return
	}
	e.leave(f)
	f.first = f.ways
	for _, t := range e.touched[f.touched:] {
		e.vars[t.variable].seen = t.seen
		if t.set {
			e.vars[t.variable].through = t.through
		}
	}
	f.op = opElse
	e.height, e.known, e.chain, e.depth, e.dead = f.height+int64(f.shape.params), f.before, f.links, f.above, false
	e.block()
}

// leave is the way into the end of a frame that follows its last instruction.
func (e *estimator) leave(f *frame) {
	if !e.dead {
		e.odd = e.odd || e.height != f.height+int64(f.shape.results)
		f.way(e)
	}
}

// close ends a block, loop, if, or the function.
func (e *estimator) close() {
	f := e.frames[len(e.frames)-1]
	if f.dead {
		e.frames = e.frames[:len(e.frames)-1]
		return
	}
	back, walk := int64(0), int64(0)
	if f.op == opLoop {
		back, walk = f.ways, f.walk
		e.merges[f.merge].ways = 1 + back
		e.loops--
		e.path += walk
		f.ways, f.walk, f.known, f.shallow = 0, 0, math.MaxInt64, math.MaxInt64
	}
	e.leave(&f)
	if f.op == opIf { // the other half is empty
		e.depth = f.above
		e.block()
		f.ways, f.walk, f.known, f.chain, f.shallow = f.ways+1, f.walk+f.links, min(f.known, f.before), f.links, f.above
	}
	if f.op == opElse && f.first > 0 && f.ways > f.first { // the halves part where it begins
		f.shallow = f.above
	}
	e.frames = e.frames[:len(e.frames)-1]
	e.height, e.dead = f.height+int64(f.shape.results), f.ways == 0
	if len(e.frames) == 0 {
		return
	}
	if f.ways > 0 {
		e.known, e.chain, e.depth = f.known, f.chain, f.shallow
	}
	e.merge(f.ways, f.walk)
	e.settleTouches(f, back, walk)
}

// settleTouches hands what was done with variables within a frame to the frame
// around it.
func (e *estimator) settleTouches(f frame, back, walk int64) {
	within := e.touched[f.touched:]
	if e.steps[forLocals] += 8 * int64(len(within)); e.steps[forLocals] > perFunction.most.Steps {
		e.over = true // it is refused anyway
		return
	}
	e.touched = e.touched[:f.touched] // shorter by at least what is added
	unknown := int64(0)
	for _, t := range within {
		v := &e.vars[t.variable]
		seen := v.seen
		v.seen, v.touch = t.seen, t.last
		if t.set {
			v.through = t.through
		}
		if t.set && f.ways > 1 {
			v.pending += f.ways
		}
		if t.set && f.op == opLoop {
			v.pending += 1 + back
		}
		if t.passed && f.op == opLoop {
			unknown++
			e.pay(forLocals, 0, (1+back)*memoryArgument)
			e.live(v, max(seen, f.flow), e.flow)
			if e.through(max(seen, f.flow), e.flow, v.through); !t.set { // else a way out may begin before it is
				v.through = max(v.through, e.flow)
			}
			e.phis(v)
		}
		if t.passed {
			e.read(t.variable, f.flow, t.through)
		}
		if t.set {
			e.touch(t.variable).set = true
		}
	}
	e.steps[forLocals] += unknown * walk // each is looked up on each way back
}

// touch returns what is done with a variable in the frame that is open.
func (e *estimator) touch(i int32) *touch {
	v := &e.vars[i]
	if v.touch < e.frames[len(e.frames)-1].touched {
		e.touched = append(e.touched, touch{})
		t := &e.touched[len(e.touched)-1]
		t.variable, t.last, t.seen, t.through = i, v.touch, v.seen, v.through
		v.touch = len(e.touched) - 1
	}
	return &e.touched[v.touch]
}

// read reads a variable where the flow was such, and its merges known up to a place.
func (e *estimator) read(i int32, flow, known int64) {
	v := &e.vars[i]
	if v.seen == e.flow && v.touch >= e.frames[len(e.frames)-1].touched {
		return // it was touched in this very block
	}
	begin, t := e.frames[len(e.frames)-1].flow, e.touch(i)
	t.passed = t.passed || v.seen < begin
	e.live(v, max(v.seen, begin), flow)
	e.through(max(v.seen, begin), flow, known)
	v.through = max(v.through, flow)
	e.phis(v)
	v.seen, v.backs = max(v.seen, flow), e.backs
}

// live pays for a variable that lives from one place in the flow to another.
// There is no more to pay for than the function has up to here.
func (e *estimator) live(v *variable, from, to int64) {
	if cost := min(to-from, e.flow-v.paid); cost > 0 {
		v.paid += cost
		e.pay(forLocals, 0, cost)
	}
}

// phis pays for the blocks in which a variable that is read can have several
// values.
func (e *estimator) phis(v *variable) {
	e.pay(forLocals, v.pending*codeMoved, v.pending*memoryArgument)
	v.pending = 0
}

// write writes a variable.
func (e *estimator) write(i int32) {
	e.touch(i).set = true
	v := &e.vars[i]
	if e.backs > v.backs { // one of them looks the variable up from there
		begin := e.frames[len(e.frames)-1].flow
		e.live(v, max(v.seen, begin), e.flow)
		e.through(max(v.seen, begin), e.flow, v.through)
	}
	v.seen, v.backs = e.flow, e.backs
}

// instruction adds what an instruction costs, and does to the operand stack.
func (e *estimator) instruction(in *instruction) {
	if e.over {
		return
	}
	if k := &kinds[in.op]; k.simple {
		if !e.dead {
			e.simple(k)
		}
		return
	}
	switch in.op {
	case opLocalGet, opLocalSet, opLocalTee:
		if !e.dead {
			e.local(in.op, int32(in.index))
		}
		return
	case opBlock, opLoop, opIf:
		if in.op == opIf {
			e.height--
		}
		e.open(in)
		return
	case opElse:
		e.otherwise()
		return
	case opEnd:
		e.close()
		return
	}
	if e.dead {
		return
	}
	switch in.op {
	case opBranch:
		e.branch(in.index)
		e.dead = true
	case opBranchIf:
		e.height--
		e.branch(in.index)
		e.block()
	case opBranchTable:
		e.height--
		c, above := &cursor{b: e.labels}, e.depth
		for range c.uint() + 1 { // and where everything else goes
			e.depth = above
			e.block()
			e.branch(c.uint())
		}
		e.dead = true
	case opReturn:
		e.block()
		e.move(forCalls, int64(e.frames[0].shape.results))
		e.dead = true
	case opUnreachable:
		e.dead = true
	case opCall, opTailCall:
		e.call(e.module.shape(e.module.functions[in.index]))
		e.dead = in.op == opTailCall
	case opCallIndirect, opTailIndirect:
		e.height--
		e.call(e.module.shape(in.index))
		e.dead = in.op == opTailIndirect
	case prefixSIMD:
		e.height += effectVector(in.number)
		e.simple(&vector)
	case prefixMisc:
		e.height += effectMisc(in.number)
		e.misc(in)
	case opMemoryGrow:
		e.count[others]++
		e.reload()
	}
}

// local reads or writes a local variable.
func (e *estimator) local(op byte, i int32) {
	switch op {
	case opLocalGet:
		e.height++
		v := &e.vars[i]
		e.steps[forLocals] += e.chain + e.path - v.walked
		v.walked = e.path
		e.read(i, e.flow, v.through)
	case opLocalSet:
		e.height--
		e.write(i)
	case opLocalTee:
		e.write(i)
	}
}

// simple is an instruction that neither branches nor calls.
func (e *estimator) simple(k *kind) {
	e.height += int64(k.effect)
	e.count[k.class]++
	switch k.class {
	case accesses, vectors:
		e.known++
		e.steps[forStack] += e.chain + 2*(e.path-e.walked) // where memory begins, and how long it is
		e.walked = e.path
	case ofGlobals:
		e.globals++
		e.steps[forGlobals] += e.chain
	}
}

// misc is an instruction of the prefix 0xfc.
func (e *estimator) misc(in *instruction) {
	if in.number < memoryInit { // saturating conversions
		e.count[truncations]++
		return
	}
	e.count[others]++
	if in.bulk != bulkNone {
		e.settle()
		e.block()
		e.block()
		e.merge(2, 2*e.chain) // of table.fill, which is a loop, not over the two
		e.reload()
	}
}

// call is a call of a function of such a type.
func (e *estimator) call(s shape) {
	e.pay(forCalls, codeCall, 2*memoryPlain)
	e.move(forCalls, s.values())
	e.height += int64(s.results) - int64(s.params)
	e.reload()
}

// valuesAtOnce is how many values are moved at the price of an instruction.
const valuesAtOnce = 4

// growing is what an instruction costs for which the engine calls the host.
const growing = 64

// weight is what an instruction costs: one, and more for the values that it moves.
func (e *estimator) weight(in *instruction) int64 {
	values := int64(0)
	switch in.op {
	case opElse, opEnd:
		values = int64(e.frames[len(e.frames)-1].shape.results)
	case opLoop:
		values = int64(in.shape.params)
	case opBranch, opBranchIf:
		values = e.carried(in.index)
	case opBranchTable:
		c := &cursor{b: e.labels}
		c.uint()
		values = e.carried(c.uint())
	case opReturn:
		values = int64(e.frames[0].shape.results)
	case opCall, opTailCall:
		values = e.module.shape(e.module.functions[in.index]).values()
	case opCallIndirect, opTailIndirect:
		values = e.module.shape(in.index).values()
	case opMemoryGrow, opRefFunc:
		return growing
	case prefixMisc:
		if in.number == tableGrow {
			return growing
		}
	}
	return 1 + values/valuesAtOnce
}
