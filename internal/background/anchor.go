package background

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/background/notify"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files/watch"
)

// An anchored head is a line of what audit.anchor writes.
type anchored struct {
	Time time.Time `json:"time"`
	Path string    `json:"path"` // of the log
	Head string    `json:"head"` // SEQ:HASH, as `audit verify --head` takes it
}

// anchor keeps the head of the audit log elsewhere as often as the configuration says, and
// once more at the end.
func (b *Work) anchor(ctx context.Context, c config.Anchor) {
	var kept audit.Head
	for going := true; going; {
		going = watch.Wait(ctx, c.Every)
		head := b.of.Gateway.Operator().AuditHead()
		if head == kept {
			continue
		}
		err := b.keepHead(context.WithoutCancel(ctx), c, head)
		b.problem("audit.anchor", err)
		if err == nil {
			kept = head
		}
	}
}

func (b *Work) keepHead(ctx context.Context, c config.Anchor, head audit.Head) error {
	line, err := json.Marshal(anchored{time.Now().UTC(), b.first.Audit.Path, head.String()})
	if err != nil {
		return err
	}
	line = append(line, '\n')
	var errs []error
	if c.File != "" {
		errs = append(errs, appendLine(c.File, line))
	}
	if c.Command != nil {
		errs = append(errs, notify.Run(ctx, c.Command, line))
	}
	return errors.Join(errs...)
}

// LastAnchor returns the last head in a file that audit.anchor has written. A line that was
// not written to its end is none.
func LastAnchor(path string) (audit.Head, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return audit.Head{}, err
	}
	whole := bytes.TrimSuffix(b[:bytes.LastIndexByte(b, '\n')+1], []byte("\n"))
	var last anchored
	if err := json.Unmarshal(whole[bytes.LastIndexByte(whole, '\n')+1:], &last); err != nil {
		return audit.Head{}, fmt.Errorf("%s: its last line is not a head: %w", path, err)
	}
	head, err := audit.ParseHead(last.Head)
	if err != nil {
		return audit.Head{}, fmt.Errorf("%s: %w", path, err)
	}
	return head, nil
}

func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Sync(), f.Close())
}
