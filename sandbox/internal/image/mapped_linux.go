package image

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hostPage is the smallest page that the kernel copies at a write.
const hostPage = 4 << 10

// maxDirty bounds how many bytes of written pages a memory keeps. Pages beyond that are given back
// to the kernel, which costs more than copying as many.
const maxDirty = 512 * hostPage

// mapped is the file in memory that the mappings are of.
type mapped struct{ fd int }

// dirt is where the kernel writes which pages were written to.
type dirt struct{ ranges [128]pageRegion }

// seal writes the image to a file in memory that cannot be changed any more.
func (i *Image) seal(content []byte, size int64) (err error) {
	fd, err := unix.MemfdCreate("wasm-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return fmt.Errorf("image: make a file in memory: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, unix.Close(fd))
		}
	}()
	if err := unix.Ftruncate(fd, size); err != nil {
		return fmt.Errorf("image: size a file in memory: %w", err)
	}
	if err := writeSparse(fd, content); err != nil {
		return fmt.Errorf("image: write a file in memory: %w", err)
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("image: seal a file in memory: %w", err)
	}
	i.mapped.fd = fd
	i.content, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("image: map a file in memory: %w", err)
	}
	return nil
}

// writeSparse leaves out pages of zeros, which then take no memory.
func writeSparse(fd int, content []byte) error {
	zero := make([]byte, hostPage)
	for at := 0; at < len(content); at += hostPage {
		page := content[at:min(at+hostPage, len(content))]
		if bytes.Equal(page, zero[:len(page)]) {
			continue
		}
		if _, err := unix.Pwrite(fd, page, int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// Close frees the image.
func (i *Image) Close() error {
	if i.method != Scan || i.content == nil {
		return nil
	}
	content := i.content
	i.content = nil
	return errors.Join(unix.Munmap(content), unix.Close(i.mapped.fd))
}

// reserve maps the image, and behind it room to grow which takes memory only
// where it is written to.
func (m *Memory) reserve() error {
	reserved, err := unix.MmapPtr(-1, 0, nil, uintptr(m.limit), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("image: reserve %d bytes: %w", m.limit, err)
	}
	m.buf = unsafe.Slice((*byte)(reserved), m.limit)
	if err := m.lay(); err != nil {
		return errors.Join(err, m.unmap())
	}
	return nil
}

// lay maps the image to where the memory begins.
func (m *Memory) lay() error {
	_, err := unix.MmapPtr(m.image.mapped.fd, 0, unsafe.Pointer(unsafe.SliceData(m.buf)), uintptr(m.image.Size()),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("image: map %d bytes: %w", m.image.Size(), err)
	}
	return nil
}

func (m *Memory) unmap() error {
	if m.buf == nil {
		return nil
	}
	buf := m.buf
	m.buf = nil
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(buf)), uintptr(len(buf)))
}

// restore copies the image over the pages that were written to, and drops what
// the memory grew by.
func (m *Memory) restore() error {
	size := uint64(m.image.Size())
	dirty := uint64(0)
	err := m.written(size, func(from, to uint64) {
		dirty += to - from
		copy(m.buf[from:to], m.image.content[from:to])
	})
	if err != nil {
		return err
	}
	if dirty > maxDirty {
		if err := unix.Madvise(m.buf[:size], unix.MADV_DONTNEED); err != nil {
			return fmt.Errorf("image: drop written pages: %w", err)
		}
	}
	if m.used > size {
		if err := unix.Madvise(m.buf[size:m.used], unix.MADV_DONTNEED); err != nil {
			return fmt.Errorf("image: drop grown pages: %w", err)
		}
	}
	return nil
}

// Of ioctl_pagemap(2), linux/fs.h.
type pageRegion struct{ start, end, _ uint64 } // the last are categories

type scanArguments struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages       uint64
	categoryInverted, categoryMask, categoryAnyofMask, returnMask uint64
}

const (
	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
	pagemapScan   = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)
)

// pagemap is the file of this process on which pages are asked for.
var pagemap = sync.OnceValues(func() (int, error) {
	return unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
})

// written calls f for each range of the first size bytes that is private: there
// or swapped out, and not of the file.
func (m *Memory) written(size uint64, f func(from, to uint64)) error {
	fd, err := pagemap()
	if err != nil {
		return fmt.Errorf("image: open the page map: %w", err)
	}
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.buf))))
	for at := base; at < base+size; {
		arg := scanArguments{
			start: at, end: base + size, vec: uint64(uintptr(unsafe.Pointer(&m.dirt.ranges))), vecLen: uint64(len(m.dirt.ranges)),
			categoryInverted: pageIsFile, categoryMask: pageIsFile, categoryAnyofMask: pageIsPresent | pageIsSwapped, returnMask: pageIsPresent,
		}
		arg.size = uint64(unsafe.Sizeof(arg))
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), pagemapScan, uintptr(unsafe.Pointer(&arg)))
		if errno != 0 {
			return fmt.Errorf("image: ask for written pages: %w", errno)
		}
		for _, r := range m.dirt.ranges[:n] {
			f(r.start-base, r.end-base)
		}
		if arg.walkEnd <= at {
			return errors.New("image: the kernel does not come to an end of the written pages")
		}
		at = arg.walkEnd
	}
	return nil
}
