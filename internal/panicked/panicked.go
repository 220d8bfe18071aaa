package panicked

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// Error returns the error for a value that recover returned. It is called by the deferred function,
// or by one that this calls: the place of the panic is still on the stack then.
func Error(v any) error {
	if at := place(); at != "" {
		return fmt.Errorf("panic: %v (in %s)", v, at)
	}
	return fmt.Errorf("panic: %v", v)
}

// place is the first function below the panic that is not of the runtime.
func place() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for below := false; ; {
		f, more := frames.Next()
		switch ofRuntime := strings.HasPrefix(f.Function, "runtime."); {
		case f.Function == "runtime.gopanic":
			below = true
		case below && !ofRuntime:
			return fmt.Sprintf("%s, %s:%d", path.Base(f.Function), path.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}
