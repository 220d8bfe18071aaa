package files

// A Disk is how much of a disk is free for this user, and how large it is, in bytes.
type Disk struct{ Free, Size uint64 }

// Reserve is what is to be left free by what can do without it: 5 % of the disk, and
// at most 1 GiB.
func (d Disk) Reserve() uint64 { return min(d.Size/20, 1<<30) }

// Room is what is free beyond the reserve.
func (d Disk) Room() uint64 { return d.Free - min(d.Free, d.Reserve()) }
