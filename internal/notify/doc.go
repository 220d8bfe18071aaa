// Package notify tells people and programs outside of the gateway what happens in it.
package notify
