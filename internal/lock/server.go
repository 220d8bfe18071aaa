package lock

// Identity is what a server is: the program, the address, or the module.
const Identity Kind = "identity"

var identityKind = kind{Kind: Identity, single: true, subject: "server"}

// Instructions are what a server says of how it is used.
const Instructions Kind = "instructions"

var instructionsKind = kind{Kind: Instructions, single: true, subject: "instructions"}
