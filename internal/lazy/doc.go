// Package lazy compiles the program's regular expressions when they are first used. The program
// starts for a single call or a single command, too, and most of its expressions judge what such a
// call never holds.
package lazy
