// Package panicked makes an error of the value of a panic: it names the place, not the whole stack,
// so that programs which print errors do not print stacks.
package panicked
