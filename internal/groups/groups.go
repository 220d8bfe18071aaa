// Package groups has the words of groups of tools: see gate.Groups.
package groups

import "strings"

// OfServer begins the name of a group of all that a server has, which no configuration
// can give to another.
const OfServer = "server:"

// Text is as one would say them: "docs or mail, and reading".
func Text(groups [][]string) string {
	lists := make([]string, len(groups))
	for i, names := range groups {
		lists[i] = strings.Join(names, " or ")
		if len(names) == 0 {
			lists[i] = "no group"
		}
	}
	return strings.Join(lists, ", and ")
}
