package sandbox

import (
	"reflect"

	"github.com/tetratelabs/wazero/api"
)

const (
	// keptStack is the size in bytes up to which the stack of a function is kept
	// for the next call: most guests need less.
	keptStack = 256 << 10
	// deepFuel is how many instructions a guest executes before its stack can be
	// larger than that: each costs some of it.
	deepFuel = 1 << 14
)

// stackSize is how many bytes the stack of a function has, which grows and never
// shrinks. The engine does not tell: this looks at a field of its own, which it
// can read but not change. If the field is not there, the size is unknown, and
// -1; a test notices.
func stackSize(f api.Function) int64 {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return -1
	}
	stack := v.Elem().FieldByName("stack")
	if stack.Kind() != reflect.Slice {
		return -1
	}
	return int64(stack.Len())
}

// dropStacks gives up the functions whose stacks have become large.
func (in *instance) dropStacks() {
	for name, f := range in.functions {
		if size := stackSize(f); size < 0 || size > keptStack {
			delete(in.functions, name)
		}
	}
}
