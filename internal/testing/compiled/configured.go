package compiled

import (
	"regexp"
	"strings"
)

var (
	toolsFlow  = regexp.MustCompile(`(?m)^tools: *\{`)
	toolsBlock = regexp.MustCompile(`(?m)^tools: *\n`)
	stateKey   = regexp.MustCompile(`(?m)^state:`)
)

// Configured returns a configuration that names the embedded tools, and has its state in the
// folder state next to it, where [Link] puts the machine code.
func Configured(yaml string) string {
	if !stateKey.MatchString(yaml) {
		yaml = strings.TrimRight(yaml, "\n") + "\nstate: state/\n"
	}
	const tools = "embedded: {module: embedded}"
	switch {
	case strings.Contains(yaml, tools):
	case toolsFlow.MatchString(yaml):
		yaml = toolsFlow.ReplaceAllString(yaml, "tools: {"+tools+", ")
	case toolsBlock.MatchString(yaml):
		yaml = toolsBlock.ReplaceAllString(yaml, "tools:\n  "+tools+"\n")
	default:
		yaml += "tools: {" + tools + "}\n"
	}
	return yaml
}
