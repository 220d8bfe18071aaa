// Package spelling knows how names are written: it accepts those that are compared as they are in
// one way alone, and finds the known word that another was meant to be. Each error says what is
// expected.
package spelling
