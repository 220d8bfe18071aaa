package link_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/rig"
)

func TestMain(m *testing.M) { rig.Main(m, nil) }
