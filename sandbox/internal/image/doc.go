// Package image keeps the linear memory of a WebAssembly instance at rest, and
// brings memories back to it.
//
// An [Image] is what memory holds at the snapshot point of a module. Every
// [Memory] begins as a copy of it; after a call, [Memory.Reset] undoes what the
// call wrote, so that the memory is equal to the image, byte for byte, and zero
// beyond it.
//
// On Linux an image is a sealed file in memory and a memory is a private mapping
// of it: the kernel copies the pages that a guest writes to, and tells which
// these are ([Scan], PAGEMAP_SCAN of ioctl_pagemap(2), Linux 6.7), so that only
// they are written back. They stay where they are: the next call faults for none
// of them. Where that does not work, which a test at the first use finds out,
// memories are ordinary slices that are copied whole ([Copy]).
//
// Package sandbox makes images of modules, and of each the memories of instances. image.go has both
// for slices, mapped_linux.go the mapping and the scan, mapped_other.go says that there is none.
package image
