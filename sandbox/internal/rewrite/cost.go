package rewrite

import "fmt"

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
