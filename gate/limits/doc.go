// Package limits bounds how many calls run at once, and how many there are in a time. [*Limits] is a
// [gate.Limiter].
//
// A call enters in limits.go. A holding, in holding.go, is what the call has of the pools in pool.go.
// Rates are counted by buckets.go in the memory of one gateway, or by portions.go with other gateways.
package limits
