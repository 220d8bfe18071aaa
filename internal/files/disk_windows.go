package files

import "golang.org/x/sys/windows"

// DiskOf returns the disk that has dir.
func DiskOf(dir string) (d Disk, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return Disk{}, err
	}
	err = windows.GetDiskFreeSpaceEx(name, &d.Free, &d.Size, nil)
	return d, err
}
