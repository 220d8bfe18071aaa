package config

// Limits bound one call and all of them.
type Limits struct {
	Body       int64       `key:"body 1KiB..1GiB" default:"4MiB"`    // bytes of a request
	Result     int64       `key:"result 1KiB..1GiB" default:"10MiB"` // bytes of an upstream's answer
	Concurrent int         `key:"concurrent 1..65536" default:"64"`  // calls in progress
	Session    int         `key:"session 1..65536"`                  // those of one session; zero sets no limit of its own
	Processes  int         `key:"processes 1..1024"`                 // of one server that belong to a client each; zero: 16. At most 64 of all servers together
	Tools      []ToolLimit `key:"tools tool"`
}

// A ToolLimit is how many calls may be in progress of each tool that Pattern
// matches: a literal, or a literal with * at its end. The first that matches counts.
type ToolLimit struct {
	Pattern    string `key:"*"`
	Concurrent int    `key:"= 1..65536"`
}
