package gate

// way is one call on its way. Its methods are the steps: each returns what it finds to its caller,
// which takes the call on, and writes what there is to tell into the trail.
type way struct {
	trail
	gate    *Gate // nil for what is done within a call
	relayed bool  // made by [Permit.Relay]
	held    held
}

// nested is the way of a nested call.
type nested struct {
	way
	by   *permitted
	paid bool // it has room in the log, see [ledger]
}
