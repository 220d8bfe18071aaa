package confine

// File returns the absolute path of the program that [Start] would start.
func (c Command) File() (string, error) {
	x, err := c.resolve()
	if err != nil {
		return "", err
	}
	return x.Path, nil
}
