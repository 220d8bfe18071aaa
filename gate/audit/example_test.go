package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wasmgate/wasmgate/gate/audit"
)

// A log is written, verified, and verified again after somebody has changed it.
func Example() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "audit.jsonl")
	l, err := audit.Open(path, audit.Options{Node: "n1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	l.Append(audit.Entry{Event: "server", Server: "files", Code: "spawn_failed"})
	l.Append(audit.Entry{Event: "server", Server: "files", Code: "ok"})
	l.Close()

	names, _ := audit.Files(path)
	report, err := audit.VerifyFiles(names, audit.Head{})
	fmt.Println(report.Records, "records:", err)

	text, _ := os.ReadFile(path)
	os.WriteFile(path, bytes.Replace(text, []byte("spawn_failed"), []byte("nothing"), 1), 0o600)
	_, err = audit.VerifyFiles(names, audit.Head{})
	fmt.Println(err)
	// Output:
	// 3 records: <nil>
	// audit.jsonl: line 2: record 2 was changed, or the prev of the one after it
}
