package shell

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/gate"
)

func YesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask; needed where there is no terminal")
}

// Confirmed returns nil if a person confirms what a command is to open up: at the terminal,
// after it was shown, or before by --yes. That keeps a script or an agent from doing it by
// accident; one that has a shell can write --yes itself.
func (c *Shell) Confirmed(yes bool, preview func() error, question string) error {
	if yes {
		return nil
	}
	if !c.AtTerminal() {
		return Misuse("this asks a person first, and there is no terminal: run it in a terminal, or look at it first and add --yes")
	}
	if err := preview(); err != nil {
		return err
	}
	verdict, err := c.answer(question + " [y/N]")
	if err == nil && verdict != gate.Approved {
		err = Exit(ExitFalse, errors.New("nothing was changed"))
	}
	return err
}
