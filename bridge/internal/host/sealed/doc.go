// Package sealed seals the data that clients without a session keep for a host between the answer
// that asks them for something and the call that brings it: requestState (MCP 2026-07-28,
// basic/patterns). A client that has a state can neither read nor change it, nor use it for another
// call, or as another principal.
package sealed
