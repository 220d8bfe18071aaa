// Package shell provides what the commands of the program share: the configuration, the gateway that they ask, answers at the
// terminal, output, and errors with exit codes.
package shell
