// Package redaction takes out of a result what a policy redacts, and the copies of it in the texts.
package redaction
