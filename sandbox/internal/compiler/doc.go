// Package compiler makes machine code of modules where it can be ended.
//
// A compiler's time and memory are no function of a module's size, and what runs in
// the gateway cannot be interrupted. So a module is compiled by a child: this program,
// started once more, under limits of memory and CPU, at a low priority (nice 10), one at a
// time of all processes that share the cache. The child fills a folder of its own; what
// it left there is looked at, and moved into the cache that the engine of the gateway
// reads. A module that takes too much costs a child, and a module that makes the engine
// panic does, too.
//
// Next to each entry of the cache is a file that names the module by its digest, the engine, and
// the entry with its size, and with its digest if the outline's entry is as large. An entry that no
// such file names is not read. Another such file names it by what it was made from, and next to
// that is what the engine of the gateway gets instead of the module: an outline of it, without its
// code.
//
// A program that never calls [Main] has no child: it compiles in the process, by one
// worker, so that a panic is an error, and under a quarter of the bounds.
//
// Anyone that can write in the folder of a cache can run code in the gateway. So a folder that is
// not open to its owner only is refused.
package compiler
