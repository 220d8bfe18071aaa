// Package granted carries out what a module asks for that is run alone, without a gateway: what it
// was granted on the command line or in a case, and no policy is asked.
package granted
