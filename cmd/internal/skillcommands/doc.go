// Package skillcommands provides the commands that list, show and verify skills.
package skillcommands
