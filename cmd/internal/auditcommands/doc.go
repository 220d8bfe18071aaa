// Package auditcommands provides the commands that read the audit log, its findings and its sessions.
package auditcommands
