package definitioncommands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/pins"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/lock"
)

func (c commands) newPinApprove() *cobra.Command {
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "approve TOOL|SERVER",
		Short: "Approve definitions as they are now",
		Long: `Adds the digests of definitions to wasmgate.lock; gateways that share a database keep them there. Earlier
approvals stay. Approving a tool also approves the identity of its server. The first approval of a server
also writes all its trusted definitions; from then on only what is written says what is approved. The
running gateway uses it at once.

On a terminal it shows what differs, and asks. Without a terminal it needs --yes.`,
		Example: "  wasmgate pin approve files__read_file\n  wasmgate pin approve files\n  wasmgate pin approve --all --yes",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return shell.Misuse("name a tool or a server, or approve everything with --all")
			}
			return c.pinned(cmd, func(ctx context.Context, cfg *config.Config, g operation.Gateway) error {
				return c.approvePins(ctx, cfg, g, selector(args), yes)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "approve everything that the servers declare")
	shell.YesFlag(cmd, &yes)
	return cmd
}

// approved is what an approval prints for machines.
type approved struct {
	Lockfile string     `json:"lockfile"`
	Approved []lock.Pin `json:"approved"`
}

func (c commands) approvePins(ctx context.Context, cfg *config.Config, g operation.Gateway, selector string, yes bool) error {
	review, err := pins.Compare.Ask(ctx, g, pins.Request{Selector: selector})
	if err != nil {
		return err
	}
	if len(review.Approval) > 0 {
		look := func() error { c.showReview(review); return nil }
		if err := c.Confirmed(yes, look, fmt.Sprintf("Approve %s?", show.Plural(len(review.Approval), "definition"))); err != nil {
			return err
		}
	}
	added, where, err := pins.Keep(ctx, cfg, g, review.Approval)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, pin := range added {
		fmt.Fprintf(&text, "approved %s sha256:%s\n", lock.Visible(pin.String()), pin.Digest)
	}
	fmt.Fprintf(&text, "%s approved, in %s", show.Plural(len(added), "definition"), where)
	return c.Said(approved{where, append([]lock.Pin{}, added...)}, text.String())
}

// showReview shows the person at the terminal what an approval is about.
func (c commands) showReview(r *lock.Review) {
	show.Differences(c.Err, slices.DeleteFunc(r.Differences, func(d lock.Difference) bool { return !slices.Contains(r.Approval, d.Pin) }))
	for _, pin := range r.Approval {
		fmt.Fprintf(c.Err, "%s sha256:%s\n", lock.Visible(pin.String()), pin.Digest)
	}
}
