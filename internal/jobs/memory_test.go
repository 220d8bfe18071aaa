package jobs_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/internal/jobs"
	"github.com/wasmgate/wasmgate/internal/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) jobs.Store { return new(jobs.Memory) })
}
