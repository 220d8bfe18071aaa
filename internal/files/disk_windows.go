package files

import "golang.org/x/sys/windows"

// Free returns which part of the disk that has dir is free for this user.
func Free(dir string) (float64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free, total uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, &total, nil); err != nil {
		return 0, err
	}
	return float64(free) / max(1, float64(total)), nil
}
