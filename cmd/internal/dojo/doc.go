// Package dojo puts the published benchmark AgentDojo before the policy packs. It has tests only.
package dojo
