//go:build unix

package confine_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/wasmgate/wasmgate/confine"
)

// A program calls Main before anything else, here in TestMain.
func Example() {
	child, err := confine.Start(context.Background(), confine.Command{
		Path: "sh",
		Args: []string{"-c", `read line; echo "you said: $line $MORE"`},
		Env:  confine.Environ(map[string]string{"MORE": "and more"}, os.LookupEnv),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer child.Close(time.Second)

	fmt.Fprintln(child.Stdin(), "hello")
	answer, err := io.ReadAll(child.Stdout())
	fmt.Printf("%s%v %v\n", answer, err, child.Wait())
	// Output:
	// you said: hello and more
	// <nil> <nil>
}
