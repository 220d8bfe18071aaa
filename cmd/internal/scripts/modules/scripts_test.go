package modules

import (
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/scripts"
)

func TestMain(m *testing.M) { scripts.Main(m) }

func TestScripts(t *testing.T) { scripts.Run(t) }
