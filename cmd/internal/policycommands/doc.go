// Package policycommands provides the commands that check, test, explain and learn policies, and that give and take grants.
package policycommands
