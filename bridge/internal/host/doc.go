// Package host serves MCP clients over HTTP and stdio, and takes each of their calls to a
// [gate.Gate]. A [Host] puts together the packages below it. Each uses those under it:
//
//	client
//	  |    transport   HTTP and lines: reads what a client sends, finds out its principal,
//	  |                checks headers, writes the answer
//	  |    dispatch    answers a request: the methods of MCP, tools and other uses of
//	  |                servers, lists, subscriptions, tasks; carries calls out by Config.Do
//	  |    sessions    the clients: their sessions, the streams of their answers, what they
//	  |                are asked and told outside of an answer
//	  v    message     the shape of messages, and the errors and refusals that clients read
//	gate
//
// Smaller packages serve one of these: respond (bytes and events over HTTP), shares (places for
// streams), parking, questions and sealed (calls that wait for clients without a session), elicit
// (forms for people).
//
// A host knows no servers: dispatch.Config has functions for what it needs of the gate and of
// the servers behind it.
package host
