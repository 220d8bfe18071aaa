package input

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
)

// skillMembers describe a skill, or the skill of a file.
var skillMembers = members[*gate.Tool]{
	has("server", text, "the server's id in the configuration", server),
	has("uri", text, "of its SKILL.md, as the server knows it", func(t *gate.Tool) *ast.Term { return ast.StringTerm(t.Skill.URI) }),
	has("name", text, "the name that grants have, `SERVER/PATH`", func(t *gate.Tool) *ast.Term { return ast.StringTerm(t.Skill.Name) }),
	has("file", text, "the path of the file or folder below the skill's folder, or empty", func(t *gate.Tool) *ast.Term { return ast.StringTerm(t.File) }),
	has("files", number, "how many files it has", func(t *gate.Tool) *ast.Term { return ast.IntNumberTerm(len(t.Skill.Files)) }),
	has("bytes", number, "how many bytes its files have together", func(t *gate.Tool) *ast.Term { return ast.IntNumberTerm(int(t.Skill.Size)) }),
	has("dynamic", truth, "whether its server gives no digests of its files", func(t *gate.Tool) *ast.Term { return ast.BooleanTerm(t.Skill.Dynamic) }),
	has("nested", truth, "whether it is in the folder of another skill", func(t *gate.Tool) *ast.Term { return ast.BooleanTerm(t.Skill.Nested) }),
	has("widens", texts, "members of its frontmatter that ask for rights, such as `allowed-tools`, or that are not specified", func(t *gate.Tool) *ast.Term { return Texts(t.Skill.Widens) }),
	has("notes", texts, "what was noticed in its files, such as `setup.sh: runs what it downloads`", func(t *gate.Tool) *ast.Term { return Texts(t.Skill.Notes) }),
	has("pinned", truth, "whether a person has approved all of its files", func(t *gate.Tool) *ast.Term { return ast.BooleanTerm(t.Pinned) }),
	has("trusted", truth, "whether the configuration trusts its server's authors", func(t *gate.Tool) *ast.Term { return ast.BooleanTerm(t.Skill.Trusted) }),
	has("groups", texts, "the configuration's groups that it is in", groups),
}

var number = &Shape{Kind: Number}
