package files

import (
	"path/filepath"
	"slices"
	"unsafe"
)

// granted returns the directories that the operator has granted, in order: those that are open
// when the module starts, from descriptor 3 on.
func granted() (dirs []string) {
	for fd := int32(3); ; fd++ {
		var stat [2]uint32 // what kind it is, and the length of its name
		if prestatGet(fd, unsafe.Pointer(&stat)) != 0 {
			slices.Sort(dirs)
			return slices.Compact(dirs)
		}
		name := make([]byte, max(1, stat[1]))
		if prestatName(fd, unsafe.Pointer(&name[0]), stat[1]) == 0 {
			dirs = append(dirs, filepath.Clean(string(name[:stat[1]])))
		}
	}
}

//go:wasmimport wasi_snapshot_preview1 fd_prestat_get
//go:noescape
func prestatGet(fd int32, to unsafe.Pointer) uint32

//go:wasmimport wasi_snapshot_preview1 fd_prestat_dir_name
//go:noescape
func prestatName(fd int32, to unsafe.Pointer, length uint32) uint32
