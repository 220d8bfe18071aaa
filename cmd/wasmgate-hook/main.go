// Command wasmgate-hook is `wasmgate hook` in a small program, which starts in a few
// milliseconds: agents start it before and after each use of a tool of their own.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/wasmgate/wasmgate/internal/hook"
)

func main() {
	var o hook.Options
	flag.StringVar(&o.State, "state", "", "state folder of the gateway")
	flag.BoolVar(&o.Observe, "observe", false, "deny nothing, and record what would be denied")
	flag.DurationVar(&o.Within, "within", hook.DefaultWithin, "time for an answer, less than the agent's timeout")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: wasmgate-hook --state FOLDER AGENT < EVENT\n`wasmgate hook install AGENT` writes the line.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if o.Agent = flag.Arg(0); o.Agent == "" || flag.NArg() > 1 || o.State == "" {
		flag.Usage()
		os.Exit(2) // which denies
	}
	os.Exit(hook.Run(context.Background(), o, os.Stdin, os.Stdout, os.Stderr))
}
