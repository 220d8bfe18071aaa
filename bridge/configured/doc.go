// Package configured runs a gateway from a configuration file inside another program:
// the same that `wasmgate serve` runs from it, with its state, its policy that is
// watched, and the commands that reach it, but for a listener. A program that says in
// Go what it wants uses package bridge/gateway alone.
//
//	func main() {
//		gateway.ChildMain() // this program supervises servers that are commands, and compiles modules
//		...
//		gw, err := configured.Open(ctx, "", nil)
//		...
//		defer gw.Close(ctx)
//		client := gw.NewClient(gateway.ClientConfig{})
//		res, err := client.CallTool(ctx, "files__read_text_file", map[string]any{"path": "README.md"})
//	}
package configured
