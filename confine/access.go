package confine

// An Access is something that a child used, or tried to.
type Access struct {
	Kind AccessKind
	// Path is absolute, without symbolic links. Of a file that is made or removed
	// it is the folder.
	Path   string
	Folder bool   // Path is one
	Port   uint16 // of kind AccessConnect
}

// AccessKind is the kind of an [Access].
type AccessKind string

const (
	AccessRead    AccessKind = "read"
	AccessWrite   AccessKind = "write"
	AccessExecute AccessKind = "execute"
	AccessConnect AccessKind = "connect" // TCP, or UDP to port 53
	AccessSocket  AccessKind = "socket"  // a Unix domain socket, or UDP to another port: never allowed
)
