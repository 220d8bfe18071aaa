// Package options defines the parts of a gateway's configuration, the Config of package
// bridge/gateway: how a server is reached ([Endpoint]) and what is offered of it ([Tools]), tools
// that are Go functions ([LocalTool]), pins ([Pins]), coding agents ([Agent]), and other gateways ([Peers]).
//
// All of them are values without state. A gateway that has got one does not change it, and does
// not see later changes. What is wrong with one is an error of the function that takes it.
package options
