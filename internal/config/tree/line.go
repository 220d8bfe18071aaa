package tree

import "strings"

// Line returns the line at which a key of a configuration stands, such as policy.timeout; 0
// if the file does not have it.
func Line(file, key string) int {
	data, err := Read(file)
	if err != nil {
		return 0
	}
	n, _ := Parse(data, IsJSON(file, data))
	line := 0
	for name := range strings.SplitSeq(key, ".") {
		i, ok := 0, false
		if n != nil {
			i, ok = n.index[name]
		}
		if !ok {
			return 0
		}
		line, n = n.Fields[i].Line, n.Fields[i].Value
	}
	return line
}
