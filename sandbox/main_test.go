package sandbox_test

import (
	"log"
	"os"
	"path/filepath"
	"testing"
)

// cache is a folder that no one else may open. It is made when it is needed.
var cache string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sandbox")
	if err != nil {
		log.Fatal(err)
	}
	cache = filepath.Join(dir, "cache")
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		log.Fatal(err)
	}
	os.Exit(code)
}
