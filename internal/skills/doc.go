// Package skills reads what servers say of MCP Skills (the extension
// io.modelcontextprotocol/skills): which files a skill has, with their digests, and what its
// frontmatter asks for.
//
//	skills/list -> entry.go: the shape, the URIs and the limits of an entry
//	resources/read -> content.go: a file held against its digest
//	            -> frontmatter.go: the frontmatter of SKILL.md held against that of the entry
//	            -> examine.go: hidden text, which refuses a skill, and what a person should know
//	            -> code.go: what renderers of Markdown show as code
//
// Hosts verify each file by its digest. So nothing here changes a byte.
package skills
