package confine

// Without returns c without one of the guards of a confined child.
func (c Command) Without(guard string) Command {
	c.without = guard
	return c
}

var LookPath = lookPath
