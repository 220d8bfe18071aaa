// Package rewrite checks the binary form of a WebAssembly module and writes it
// again so that its execution is metered.
//
// [Decode] reads what every section declares against the bytes that are there,
// and bounds it, because a compiler allocates by such counts before it looks.
// [Module.Meter] then writes the module to compile. That module
//
//   - imports one function more, [MeterFunction] of [MeterModule], and has one
//     mutable global more, which it exports as [MeterGlobal];
//   - subtracts from that global, at the entry of every function and each time a loop begins, as
//     many instructions as are in the function outside its loops, or in the loop outside those
//     within it; in branches that are not taken as well, so that the count is an upper bound, the
//     same each time; a function also pays for each of its parameters and local variables, so that
//     what it takes of the engine's stack is paid for. A function that leads straight into a loop
//     at least eight times its own size, as most of Go's do, pays for its entry each time the loop
//     begins, which saves it a charge;
//   - keeps what is left in a local while a loop runs that calls nothing, and
//     stores it in the global where such a loop is left. Where it ends by a trap
//     the global has more than is left, by at most what MeterFunction gave last;
//   - subtracts for bulk instructions by their length: one for every 8 bytes of
//     memory, one for every entry of a table;
//   - calls MeterFunction when the global has become negative, with its value, and stores what
//     comes back; and within what is paid for at once every 4,096 loads and stores, because each
//     may have the operating system make a page;
//   - has one more mutable global, [BehindGlobal], from which a function that calls
//     others subtracts what it has paid for, once it has executed that: in a
//     recursion this was long ago. MeterFunction is called when it is negative,
//     and sets it;
//   - calls imported functions through functions of its own, which subtract
//     [HostCall] and call MeterFunction every time; what reads input is called again
//     as long as it returns [Again], and a command is exported by a function that
//     exits when it returns as well, [RunFunction], if [Module.Rewind] says so;
//   - has tables with a maximum, and no custom sections.
//
// [Module.Seal] writes the same without what happens at instantiation: data
// segments come out as the memory that they make, the start function is exported
// as [StartFunction], every mutable global by its [GlobalName]. A module that
// could change anything else, its tables or what is left of its segments, cannot
// be sealed.
//
// In everything else it does what the module does. table.grow costs what other
// instructions cost: how far it gets is bounded. So does memory.grow, for which
// the host may subtract from the global itself.
//
// Whether a module is valid is left to the compiler, which sees what is written here. Modules that
// could not be decoded with certainty are refused: exceptions, threads, garbage collection, typed
// function references, several memories, 64-bit memories, relaxed vector instructions, and ways of
// writing a number that the compiler could read otherwise.
//
// What it reads: cursor.go (numbers and names), decode.go (sections), opcode.go and kind.go (what
// instructions are), instruction.go. What it writes: meter.go (sections), code.go (the functions that
// it adds), function.go (those of the module), emit.go, pieces.go and remainder.go (instructions);
// outline.go writes no code at all. What compiling takes: cost.go and estimate.go.
package rewrite
