// Package files writes files in one step, and locks them against other processes.
package files
