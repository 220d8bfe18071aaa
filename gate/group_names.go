package gate

import "strings"

// ServerGroup begins the name of a group of all that a server has, which no configuration
// can give to another.
const ServerGroup = "server:"

// GroupsText is as one would say them: "docs or mail, and reading".
func GroupsText(groups [][]string) string {
	lists := make([]string, len(groups))
	for i, names := range groups {
		lists[i] = strings.Join(names, " or ")
		if len(names) == 0 {
			lists[i] = "no group"
		}
	}
	return strings.Join(lists, ", and ")
}
