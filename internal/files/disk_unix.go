//go:build unix

package files

import "golang.org/x/sys/unix"

// Free returns which part of the disk that has dir is free for this user.
func Free(dir string) (float64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return float64(s.Bavail) / max(1, float64(s.Blocks)), nil
}
