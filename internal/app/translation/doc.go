// Package translation puts a configuration into the words of a gateway: checks.go how calls are checked
// and what is kept, servers.go the servers, secretrules.go what is done with secrets, and replay.go the
// recording that answers calls.
package translation
