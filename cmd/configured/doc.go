// Package configured has the names by which programs used package bridge/configured in an
// earlier version. They go with the next one.
package configured
