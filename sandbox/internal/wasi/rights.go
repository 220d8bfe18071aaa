package wasi

// rights are what a descriptor may be used for (typenames.witx, $rights).
type rights uint64

const (
	rightFdDatasync rights = 1 << iota
	rightFdRead
	rightFdSeek
	rightFdSetFlags
	rightFdSync
	rightFdTell
	rightFdWrite
	rightFdAdvise
	rightFdAllocate
	rightPathCreateDirectory
	rightPathCreateFile
	rightPathLinkSource
	rightPathLinkTarget
	rightPathOpen
	rightFdReaddir
	rightPathReadlink
	rightPathRenameSource
	rightPathRenameTarget
	rightPathStat
	rightPathSetSize
	rightPathSetTimes
	rightFdStat
	rightFdSetSize
	rightFdSetTimes
	rightPathSymlink
	rightPathRemoveDirectory
	rightPathUnlink
	rightPoll
)

const (
	stdinRights  = rightFdRead | rightFdSetFlags | rightFdStat | rightPoll
	stdoutRights = rightFdWrite | rightFdSetFlags | rightFdStat | rightPoll

	fileRights = rightFdDatasync | rightFdRead | rightFdSeek | rightFdSetFlags | rightFdSync | rightFdTell |
		rightFdWrite | rightFdAdvise | rightFdAllocate | rightFdStat | rightFdSetSize | rightFdSetTimes | rightPoll

	dirRights = rightFdSetFlags | rightFdSync | rightFdDatasync | rightPathCreateDirectory | rightPathCreateFile |
		rightPathLinkSource | rightPathLinkTarget | rightPathOpen | rightFdReaddir | rightPathReadlink |
		rightPathRenameSource | rightPathRenameTarget | rightPathStat | rightPathSetSize | rightPathSetTimes |
		rightFdStat | rightFdSetTimes | rightPathSymlink | rightPathRemoveDirectory | rightPathUnlink

	// writing are the rights that need a file opened for writing.
	writing = rightFdWrite | rightFdAllocate | rightFdSetSize

	// changing are the rights that a read-only directory does not give. This is
	// what keeps a guest from changing it: every call that does asks for one.
	changing = writing | rightFdSetTimes | rightPathCreateDirectory | rightPathCreateFile |
		rightPathLinkSource | rightPathLinkTarget | rightPathRenameSource | rightPathRenameTarget |
		rightPathSetSize | rightPathSetTimes | rightPathSymlink | rightPathRemoveDirectory | rightPathUnlink
)

// need checks that the descriptor has all the rights in want.
func (f *file) need(want rights) errno { return f.missing(want &^ f.rights) }

// missing says what it means to lack these rights.
func (f *file) missing(lack rights) errno {
	grant := f.grant()
	switch {
	case lack == 0:
		return success
	case lack&(rightFdRead|rightFdWrite) != 0 && f.dir == nil:
		return errBadFile // as read(2) and write(2) say of a file that is not open for it
	case lack&changing != 0 && grant != nil && !grant.Write:
		return errReadOnly
	}
	return errCapability
}

// grant is the directory that f was found in, nil for streams.
func (f *file) grant() *Dir {
	switch {
	case f.dir != nil:
		return f.dir.place.grant.Dir
	case f.disk != nil:
		return f.disk.place.grant.Dir
	}
	return nil
}
