// Package folder serves the skills in a folder of this machine as an MCP server does (MCP Skills,
// stateful revisions), and tells its client when they change.
package folder
