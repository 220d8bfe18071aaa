package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wasmgate/wasmgate/bridge/gateway"
)

func TestMain(m *testing.M) {
	gateway.ChildMain()
	serveEcho()
	serveProxy()
	serveMeasured()
	testscript.Main(m, map[string]func(){"wasmgate": main})
}
