package sandbox

import (
	"reflect"
	"sync"

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
	field := stackField(v)
	if field < 0 {
		return -1
	}
	return int64(v.Elem().Field(field).Len())
}

// stackFieldOf is the type of the engine's functions, and the number of the field
// that is their stack.
var stackFieldOf struct {
	once  sync.Once
	typ   reflect.Type
	field int
}

func stackField(v reflect.Value) int {
	of := &stackFieldOf
	of.once.Do(func() {
		of.typ, of.field = v.Type(), -1
		if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
			return
		}
		if f, ok := v.Elem().Type().FieldByName("stack"); ok && f.Type.Kind() == reflect.Slice && len(f.Index) == 1 {
			of.field = f.Index[0]
		}
	})
	if v.Type() != of.typ {
		return -1
	}
	return of.field
}

// dropStacks gives up the functions whose stacks have become large.
func (in *instance) dropStacks() {
	for name, f := range in.functions {
		if size := stackSize(f); size < 0 || size > keptStack {
			delete(in.functions, name)
		}
	}
}
