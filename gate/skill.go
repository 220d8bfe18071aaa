package gate

// A Skill is a skill of a server (MCP Skills): instructions, scripts and files that hosts put
// into the context of models. Hosts verify each file by its digest, so that files pass byte for
// byte or not at all. That is why the whole set is held against the pins.
type Skill struct {
	Name  string // SERVER/PATH, by which grants, labels and commands know it
	URI   string // of its SKILL.md, as its server has it
	Entry Doc    // its entry under the URIs of its server
	// Files are those of the skill, by their paths below its folder; nil if it is Dynamic.
	Files map[string]SkillFile
	Size  int64 // of all files together, in bytes
	// Dynamic says that its server gives no digests of its files: they are sanitized as any text.
	Dynamic bool
	Nested  bool     // it is in the folder of another skill
	Trusted bool     // the operator trusts its origin
	Widens  []string // members of its frontmatter that ask for rights, or that are not specified
	Notes   []string // what a person should know of its files
}

// A SkillFile is a file of a skill.
type SkillFile struct {
	Digest string // sha256: and 64 lower-case hexadecimal digits
	Size   int64  // in bytes
}

// verified reports whether files of the skill are held against their digests.
func (s *Skill) verified() bool { return s != nil && !s.Dynamic }
