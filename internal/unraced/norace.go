//go:build !race

package unraced

func short() bool { return false }
