// Package pointer writes and reads the tokens of JSON Pointers (RFC 6901, section 3).
package pointer
