package config_test

import (
	"fmt"

	"github.com/wasmgate/wasmgate/internal/config"
)

func ExampleParse() {
	file := []byte(`
version: 1
servers:
  files:
    command: npx
    args: [-y, "@modelcontextprotocol/server-filesystem", /srv/docs]
    timeout: 30
  Tickets:
    url: https://example.com/mcp
    trasport: sse
`)
	_, err := config.Parse("wasmgate.yaml", file, config.Options{})
	fmt.Println(err)
	// Output:
	// wasmgate.yaml:7: servers.files.timeout: 30 has no unit: write 30s
	// wasmgate.yaml:8: servers.Tickets: a server is named with lower-case letters, digits and -, such as "tickets"
	// wasmgate.yaml:10: servers.Tickets.trasport: unknown key; did you mean "transport"?
}
