package lock

// Skill is a skill with all of its files. Its document has its frontmatter, the digest and the size
// of each file, and the text of its SKILL.md.
const Skill Kind = "skill"

var skillKind = kind{Kind: Skill, subject: "set of files"}
