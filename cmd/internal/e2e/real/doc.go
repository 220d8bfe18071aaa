// Package real tests servers and clients that others have made. It has tests only.
package real
