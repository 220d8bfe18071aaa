//go:build unix

package files

import "golang.org/x/sys/unix"

// DiskOf returns the disk that has dir.
func DiskOf(dir string) (Disk, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Disk{}, err
	}
	block := uint64(s.Bsize)
	return Disk{Free: block * uint64(s.Bavail), Size: block * uint64(s.Blocks)}, nil
}
