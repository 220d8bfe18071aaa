// Package spelling accepts names that are compared as they are in the one way in which they are
// written. Each error says what is expected.
package spelling
