package main

import (
	"context"
	"os"

	"github.com/wasmgate/wasmgate/bridge/gateway"
)

func main() {
	gateway.ChildMain()
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
