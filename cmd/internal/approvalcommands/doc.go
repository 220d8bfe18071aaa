// Package approvalcommands provides the commands that decide on calls that wait for approval.
package approvalcommands
