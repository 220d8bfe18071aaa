package configured

import (
	"io"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/edit"
	"github.com/wasmgate/wasmgate/internal/config/extract"
)

// Saved says what [AddServers] has written.
type Saved struct {
	Added []string // names of the servers that were not there yet
	// Variables have to be set where the gateway runs: secrets are not written into the file.
	Variables []string
	Notes     []string // what was left out or renamed
}

// AddServers adds MCP servers to the wasmgate.yaml at path, which it creates if need be, and keeps
// everything else in that file. The servers are JSON as clients keep them, {"mcpServers": {...}}.
// If the file has a server of the same name with other settings, nothing is written. A gateway that
// runs on the file takes them over.
func AddServers(path string, servers io.Reader) (Saved, error) {
	all, problems, err := config.ImportMCP(servers, path+".json") // relative paths are those of the folder
	if err != nil {
		return Saved{}, err
	}
	all, moved := extract.Servers(all)
	var s Saved
	for _, p := range problems {
		s.Notes = append(s.Notes, p.Message)
	}
	for _, m := range moved {
		s.Variables = append(s.Variables, m.Name)
	}
	s.Added, err = edit.AddServers(path, all)
	return s, err
}
