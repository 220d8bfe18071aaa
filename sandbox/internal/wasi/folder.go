package wasi

// A filetype is one of typenames.witx, $filetype.
type filetype byte

const (
	typeUnknown         filetype = 0
	typeBlockDevice     filetype = 1
	typeCharacterDevice filetype = 2
	typeDirectory       filetype = 3
	typeRegular         filetype = 4
	typeSocket          filetype = 6
	typeLink            filetype = 7
)

// An info describes a file as it was when it was looked at. Times are in
// nanoseconds since 1970; what the platform does not tell is 0.
type info struct {
	identity
	kind                        filetype
	size                        int64
	links                       uint64
	accessed, modified, changed int64
}

type entry struct {
	name  string
	kind  filetype
	inode uint64 // 0: unknown
}

// What new files and directories are made with. The umask of the process
// narrows it; preview 1 knows no permissions.
const (
	newFile      = 0o666
	newDirectory = 0o777
)
