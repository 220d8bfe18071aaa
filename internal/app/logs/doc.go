// Package logs makes the log of the operator, which follows the configuration.
package logs
