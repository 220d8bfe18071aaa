// Package message describes what the messages of MCP clients look like: it takes one apart
// ([Message]), checks its shape ([CheckParams], [CheckMeta]), and words the errors and refusals
// that a client reads ([Refusal], [Public]). It knows neither clients nor what is offered to them.
package message
