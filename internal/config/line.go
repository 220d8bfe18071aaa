package config

import "strings"

// Line returns the line at which a key of a configuration stands, such as policy.timeout; 0
// if the file does not have it.
func Line(file, key string) int {
	data, err := read(file)
	if err != nil {
		return 0
	}
	n, _ := parse(data, isJSON(file, data))
	line := 0
	for name := range strings.SplitSeq(key, ".") {
		i, ok := 0, false
		if n != nil {
			i, ok = n.index[name]
		}
		if !ok {
			return 0
		}
		line, n = n.fields[i].line, n.fields[i].value
	}
	return line
}
