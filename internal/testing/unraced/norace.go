//go:build !race

package unraced

const raced = false

func short() bool { return false }
