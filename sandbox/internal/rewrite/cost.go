package rewrite

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A Cost is what compiling a module takes, estimated from above while it is
// read: a compiler cannot be interrupted, and a few bytes of a module can ask it
// for megabytes.
type Cost struct {
	Code   int64 // bytes of machine code
	Memory int64 // bytes that the compiler holds at its height, with that code
	Steps  int64 // of what grows faster than a module, or takes long; a nanosecond or two each
}

// mostLong is how many loads, stores and vector instructions a function may have. Each takes 9 to
// 15 us, and one worker compiles the function. No listed module has half of that.
const mostLong = 100_000

// A budget bounds a cost: by so much, and so much for each byte of code, but
// never more than most.
type budget struct{ least, perByte, most Cost }

// No listed module of the real world takes more than five sixths of these. Of their functions one
// comes to 0.99, the next to 0.80. A cost that is not bounded by the size of the code is a small
// bomb.
var (
	perFunction = budget{Cost{4 << 20, 128 << 20, 1 << 25}, Cost{128, 10 << 10, 4 << 10}, Cost{64 << 20, 3 << 29, 1 << 31}}
	perModule   = budget{Cost{64 << 20, 256 << 20, 1 << 25}, Cost{128, 4 << 10, 1 << 10}, Cost{1 << 30, 6 << 30, 9 << 28}}
)

// theModule is used instead of the index of a function where all of them are meant.
const theModule = -1

// within returns an error if the cost of a function is more than the budget gives
// for so many bytes. It says what most of it was spent on.
func (b budget) within(c Cost, bytes, of int, on *expenses) error {
	if c.Code <= b.least.Code && c.Memory <= b.least.Memory && c.Steps <= b.least.Steps {
		return nil
	}
	for _, r := range []struct {
		spent, least, perByte, most int64
		unit                        string
		causes                      *[causes]int64
	}{
		{c.Code, b.least.Code, b.perByte.Code, b.most.Code, "bytes of machine code", &on.code},
		{c.Memory, b.least.Memory, b.perByte.Memory, b.most.Memory, "bytes of memory", &on.memory},
		{c.Steps, b.least.Steps, b.perByte.Steps, b.most.Steps, "steps", &on.steps},
	} {
		if most := min(r.least+r.perByte*int64(bytes), r.most); r.spent > most {
			what := "the module"
			if of != theModule {
				what = fmt.Sprintf("function %d", of)
			}
			return &CostError{fmt.Sprintf("%s needs %d %s to compile; %d are allowed for its %d bytes of code. Most of it is for %s", what, r.spent, r.unit, most, bytes, mostly(r.causes))}
		}
	}
	return nil
}

// Within returns a [*CostError] if a cost is more than this part of what any module may take: for
// callers that compile where it cannot be ended.
func (c Cost) Within(part int64) error {
	most := perModule.most
	if c.Code > most.Code/part || c.Memory > most.Memory/part || c.Steps > most.Steps/part {
		return &CostError{fmt.Sprintf("the module would take %d bytes of machine code, %d of memory and %d steps, more than a %dth of what it may where the compiler can be ended", c.Code, c.Memory, c.Steps, part)}
	}
	return nil
}

// A CostError says that a module would take more to compile than it may: which
// function of it, or all together, and for what.
type CostError struct{ Reason string }

func (e *CostError) Error() string { return "too costly to compile: " + e.Reason }

// A cause is what in a function something is spent on.
type cause int

const (
	forInstructions cause = iota
	forCalls
	forBlocks
	forLocals
	forStack
	forGlobals
	forTypes
	causes
)

var causeNames = [causes]string{
	"the number of its instructions",
	"calls and returns of many values",
	"blocks and branches, or the values that they carry",
	"local variables that live across many blocks",
	"values and addresses that live across many blocks",
	"globals, which are read anew after each call",
	"types of many parameters and results",
}

// Most bytes of machine code and of memory that the engine, of the required version, spends, with
// what the garbage collector has not freed yet.
const (
	codePlain      = 32
	codeAccess     = 88
	codeDivide     = 160
	codeTruncate   = 224
	codeVector     = 160
	codeFunction   = 160 // its beginning and end
	codeCall       = 64
	codeMoved      = 20 // a value that is passed, or moved to where a block expects it
	codeBranch     = 24
	codeRegisters  = 160 // what a branch saves and loads again, because its target has it in registers
	memoryPlain    = 1 << 10
	memoryAccess   = 6 << 10
	memoryTruncate = 8 << 10
	memoryFunction = 1 << 10 // which stays
	memoryBlock    = 3 << 10
	memoryMoved    = 448
	memoryLive     = 20  // a value that lives at the beginning of a block
	memoryBound    = 24  // an address that is known to be within memory
	memoryLookup   = 140 // a local variable that is looked up in a block of several ways in
	memoryArgument = 128 // and one that such a block has got a value for, of each way
	memoryGlobal   = 192 // a global that is read anew
	memoryOfCode   = 4
	codeGate       = 256 // of an imported function, which calls the meter as well
	codePiece      = 4 << 10
	codeType       = 256
	codeTyped      = 16 // a parameter or result of a type, in the way into functions of it
	memoryTyped    = 96
	stepsClimb     = 4       // from a block to the one that dominates it
	stepsCarried   = 2 << 10 // a value that a block takes or leaves
	stepsTyped     = 1 << 10 // a parameter or result of a type
	stepsFunction  = 4 << 10 // what a function takes, however small it is
	// lookupsPerStep is how many values at a merge are counted as a step. Each takes a
	// nanosecond, but of real programs far fewer are looked at than could be.
	lookupsPerStep = 32
)

// Workers is how many functions are compiled at a time, at most.
const Workers = 4

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

func (m *Module) shape(t uint32) shape {
	return shape{int32(m.params[t]), int32(m.results[t])}
}

// values is how many values there are in all.
func (s shape) values() int64 { return int64(s.params) + int64(s.results) }

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

// expenses are what was spent, by what for.
type expenses struct{ code, memory, steps [causes]int64 }

func (e *expenses) add(other *expenses) {
	for c := range causes {
		e.code[c] += other.code[c]
		e.memory[c] += other.memory[c]
		e.steps[c] += other.steps[c]
	}
}

func (e *expenses) sum() (c Cost) {
	for i := range causes {
		c.Code += e.code[i]
		c.Memory += e.memory[i]
		c.Steps += e.steps[i]
	}
	return c
}

// mostly names what most is spent on.
func mostly(by *[causes]int64) string {
	most := 0
	for c := range by {
		if by[c] > by[most] {
			most = c
		}
	}
	return causeNames[most]
}

// pay adds what something costs.
func (e *expenses) pay(c cause, code, memory int64) {
	e.code[c] += code
	e.memory[c] += memory
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

// A kind is what all instructions of an opcode have in common.
type kind struct {
	bare   bool // nothing follows the opcode
	usual  bool // so it is, and they are simple and no remainders
	local  bool // they read or write a local variable
	simple bool // they neither branch nor call, and name no local variable
	class  class
	effect int8 // by how many values they change the operand stack
}

// A class is of instructions that are compiled alike.
type class int

const (
	others class = iota
	accesses
	ofGlobals
	divisions
	truncations
	vectors
	classes
)

var vector = kind{class: vectors}

// Costs of an instruction of a class.
var perClass = [classes]struct{ code, memory, steps int64 }{
	others:      {codePlain, memoryPlain, 0},
	accesses:    {codeAccess, memoryAccess, 0},
	ofGlobals:   {codePlain, memoryPlain, 0},
	divisions:   {codeDivide, memoryAccess, 8 << 10},
	truncations: {codeTruncate, memoryTruncate, 16 << 10},
	vectors:     {codeVector, memoryAccess, 0},
}

var kinds = func() (kinds [256]kind) {
	for op := range 256 {
		switch op := byte(op); {
		case op <= opNop, op == opElse, op == opEnd, op == opReturn, op == opDrop, op == opSelect, op >= 0x45 && op <= 0xc4, op == 0xd1: // arithmetic, ref.is_null
			kinds[op].bare = true
		case op >= opLocalGet && op <= opLocalTee:
			kinds[op].local = true
		}
		switch op := byte(op); {
		case op == opMemoryGrow, op == prefixMisc, op == prefixSIMD, op >= opBlock && op < opDrop, op >= opLocalGet && op <= opLocalTee, op == opUnreachable:
			continue
		case op >= 0x28 && op <= 0x3f: // loads and stores, memory.size
			kinds[op].class = accesses
		case op == opGlobalGet, op == opGlobalSet:
			kinds[op].class = ofGlobals
		case op >= 0x6d && op <= 0x70, op >= 0x7f && op <= 0x82:
			kinds[op].class = divisions
		case op >= 0xa8 && op <= 0xab, op >= 0xae && op <= 0xb1: // from floats to integers
			kinds[op].class = truncations
		}
		kinds[op].simple, kinds[op].effect = true, effect(byte(op))
		kinds[op].usual = kinds[op].bare && !isRemainder(byte(op))
	}
	return kinds
}()

// call is a call of a function of such a type.
func (e *estimator) call(s shape) {
	e.pay(forCalls, codeCall, 2*memoryPlain)
	e.move(forCalls, s.values())
	e.height += int64(s.results) - int64(s.params)
	e.reload()
}

// effect is by how many values a simple instruction changes the operand stack.
func effect(op byte) int8 {
	switch {
	case op == opDrop, op == opGlobalSet, op >= 0x46 && op <= 0x4f, op >= 0x51 && op <= 0x66, // comparisons
		op >= 0x6a && op <= 0x78, op >= 0x7c && op <= 0x8a, op >= 0x92 && op <= 0x98, op >= 0xa0 && op <= 0xa6: // of two operands
		return -1
	case op == opSelect, op == opSelectTyped, op == 0x26, op >= 0x36 && op <= 0x3e: // table.set, stores
		return -2
	case op == opGlobalGet, op == 0x3f, op >= opI32Const && op <= 0x44, op == 0xd0, op == opRefFunc: // memory.size, constants
		return 1
	}
	return 0
}

func effectMisc(op uint32) int64 {
	switch {
	case op == memoryInit, op == memoryCopy, op == memoryFill, op == 12, op == 14, op == 17: // bulk instructions
		return -3
	case op == tableGrow:
		return -1
	case op == 16: // table.size
		return 1
	}
	return 0
}

// unary are the vector instructions from 96 on that have one operand.
var unary = func() (is [256]bool) {
	for _, r := range [][2]int{{96, 100}, {103, 106}, {116, 117}, {122, 122}, {124, 129}, {131, 132}, {135, 138}, {148, 148}, {160, 161}, {163, 164}, {167, 170},
		{192, 193}, {195, 196}, {199, 202}, {224, 225}, {227, 227}, {236, 237}, {239, 239}, {248, 255}} {
		for op := r[0]; op <= r[1]; op++ {
			is[op] = true
		}
	}
	return is
}()

func effectVector(op uint32) int64 {
	switch {
	case op == 12: // v128.const
		return 1
	case op == 11, op >= 88 && op <= 91, op == 82: // stores, bitselect
		return -2
	case op < 11, op >= 15 && op <= 20, op == 77, op == 83, op >= 92 && op <= 95: // loads, splats, not, any_true, conversions
		return 0
	case op >= 21 && op <= 34: // lanes: extracted, or replaced
		switch op {
		case 23, 26, 28, 30, 32, 34:
			return -1
		}
		return 0
	case op >= 96 && unary[op]:
		return 0
	}
	return -1
}

// Cost returns what compiling the module takes that Meter or Seal made of it,
// which must have been called.
func (m *Module) Cost() Cost { return m.cost }
