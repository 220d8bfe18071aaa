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
