//go:build race

package unraced

import "os"

const raced = true

func short() bool { return os.Getenv("WASMGATE_RACE_ALL") == "" }
