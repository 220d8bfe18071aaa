// Package flow tells, from the audit log, what a session has read and what it did then.
package flow
