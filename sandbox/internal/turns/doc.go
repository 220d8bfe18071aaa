// Package turns hands out the places of a sandbox: one kind to calls under way, one to guests that
// run. Modules have their turns one after the other, and so have the callers of each.
package turns
