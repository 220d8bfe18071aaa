//go:build unix && !linux

package compiler

import "os"

func executable() (string, error) { return os.Executable() }

// limitMemory does nothing: these systems do not bound what a process maps. What is
// estimated of a module bounds its memory there.
func limitMemory(uint64) error { return nil }
