// Package identitycommands provides the commands for API keys, logins and principals.
package identitycommands
