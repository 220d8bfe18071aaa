// Package records tests the commands that read and replay the audit log. It has tests only.
package records
