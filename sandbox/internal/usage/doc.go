// Package usage counts how many bytes the modules of the sandbox have added to folders, over all
// calls, and keeps the counts in a file between processes.
package usage
