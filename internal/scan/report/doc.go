// Package report scans the definitions that servers declare, or that a file holds, and
// reports what was found in them.
package report
