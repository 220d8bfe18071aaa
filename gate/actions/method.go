package actions

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxMethod bounds the name of a method, in bytes.
const maxMethod = 128

var methodName = regexp.MustCompile(`^[A-Za-z0-9_.$-]+(/[A-Za-z0-9_.$-]+)+$`)

// methodSpaces begin the methods that are MCP's, in any revision, and the actions that
// are the gateway's own.
var methodSpaces = []string{
	"completion", "elicitation", "initialize", "logging", "notifications", "ping", "prompts", "resources", "roots",
	"sampling", "server", "skills", "subscriptions", "tasks", "tools",
	"admin", "agent", "sandbox", "wasmgate",
}

// CheckMethod returns why a server cannot have a method of its own by this name, in words
// that follow the name, or nil. What MCP and the gateway have themselves must keep its one
// meaning: a policy that decides on it, or a client that asks for it, would be deceived.
func CheckMethod(name string) error {
	space, _, _ := strings.Cut(strings.ToLower(name), "/")
	switch {
	case len(name) > maxMethod:
		return fmt.Errorf("is longer than %d bytes", maxMethod)
	case !methodName.MatchString(name):
		return errors.New("is not a method such as acme/search: letters, digits and _ . $ - in two parts or more, with / between them")
	case strings.Contains(name, "__"):
		return errors.New(`holds "__", which stands between a server and its method`)
	case space == "skills":
		return errors.New("begins with skills/, as the methods of MCP Skills do, which need no entry here: see servers.X.skills")
	case slices.Contains(methodSpaces, space):
		return fmt.Errorf("begins with %s/, as methods of MCP or of the gateway do", space)
	case strings.HasPrefix(space, "rpc."):
		return errors.New("begins with rpc., as methods of JSON-RPC itself do") // JSON-RPC 2.0, section 4
	}
	return nil
}

// IsMethod reports whether the action is a method that MCP does not have.
func IsMethod(a Action) bool { return CheckMethod(string(a)) == nil }

// OfMethod returns the action of a client's use of a method that MCP does not have,
// which may name the server before it: server__method. Policies see the method as its
// server knows it, however it is asked for.
func OfMethod(name string) Action {
	if _, its, named := strings.Cut(name, "__"); named {
		return Action(its)
	}
	return Action(name)
}
