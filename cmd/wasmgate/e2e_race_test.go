//go:build unix && race

package main_test

const underRace = true
