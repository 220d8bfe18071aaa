// Package match has the patterns by which configurations mean names: a literal, or the
// beginning of one and *.
package match
