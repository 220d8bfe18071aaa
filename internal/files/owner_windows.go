package files

import (
	"io/fs"
	"os"
)

// giveOwner does nothing: a new file belongs to the user of its folder here.
func giveOwner(*os.File, fs.FileInfo) error { return nil }
