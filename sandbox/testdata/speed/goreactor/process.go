//go:build !wasip1

package main

import (
	"io"
	"log"
	"os"
)

func main() {
	args, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	out, err := answer(args)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.Write(out); err != nil {
		log.Fatal(err)
	}
}
