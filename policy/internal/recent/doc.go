// Package recent keeps what was derived lately, within bounds.
package recent
