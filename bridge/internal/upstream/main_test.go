package upstream_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/rig"
)

func TestMain(m *testing.M) { rig.Main(m, map[string]func(){"torture": torture, "asking": asking}) }
