//go:build unix && !race

package e2e

const underRace = false
