// Package files holds the tools that read files: repo_scan, which finds git
// repositories and worktrees.
//
// In the sandbox a tool sees the directories that the operator has granted, under the paths that
// they have on the host, and nothing else. The tools rely on that for safety and not for good
// manners: they search the directories that a call names, look elsewhere only at what files there
// name, follow no symbolic link, open nothing but directories and small regular files, and treat
// the contents of a file as text of a stranger.
//
// The operator names directories; the module's wish ([Module]) names none.
package files

import "github.com/wasmgate/wasmgate/sandbox/tools/tool"

// Module returns the tools as the module that cmd/guest/files makes of them.
// It wishes for directories, and which ones is for the operator to say.
func Module() tool.Module {
	return tool.Module{Tools: []tool.Tool{repoScan}, Wants: []byte(`{"dirs":[]}`)}
}
