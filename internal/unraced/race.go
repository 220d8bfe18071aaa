//go:build race

package unraced

import "os"

func short() bool { return os.Getenv("WASMGATE_RACE_ALL") == "" }
