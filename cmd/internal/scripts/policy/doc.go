// Package policy tests the commands for policies. It has tests only.
package policy
