package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/confine"
)

const (
	// runTime is how long a program of the operator's may take.
	runTime = 30 * time.Second
	// maxSaid is how much of what it writes is kept for an error, in bytes.
	maxSaid = 4 << 10
)

// Run runs a program of the operator's, with text on its standard input, and waits for its
// end. No shell reads the command, and nothing of text becomes an argument. The program
// gets of this one's environment what servers get.
func Run(ctx context.Context, command []string, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = confine.Environ(nil, os.LookupEnv)
	cmd.Stdin = bytes.NewReader(text)
	cmd.WaitDelay = time.Second // for what it has left behind with its output
	var said tail
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if ctx.Err() != nil && context.Cause(ctx) == context.DeadlineExceeded {
		err = fmt.Errorf("took longer than %s", runTime)
	}
	if words := strings.TrimSpace(string(said)); words != "" {
		return fmt.Errorf("%s: %w: %s", command[0], err, words)
	}
	return fmt.Errorf("%s: %w", command[0], err)
}

// A tail keeps the end of what is written to it.
type tail []byte

func (t *tail) Write(b []byte) (int, error) {
	*t = append(*t, b...)
	if over := len(*t) - maxSaid; over > 0 {
		*t = append((*t)[:0], (*t)[over:]...)
	}
	return len(b), nil
}
