// Package limit names the limits on calls at one time, and says that one is reached.
package limit
