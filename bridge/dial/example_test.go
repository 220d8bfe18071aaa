package dial_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/wasmgate/wasmgate/bridge/dial"
)

// A tool asks for a page, and for another one that no rule allows.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer server.Close()

	rules, err := dial.Compile([]dial.Rule{{Origin: server.URL, Path: "/v1", Private: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	egress := dial.New(dial.Options{}).Egress(dial.Scope{
		Rules: rules,
		Ask:   func(context.Context, dial.Target) error { return nil },
	})
	res, err := egress.Do(context.Background(), dial.Request{URL: server.URL + "/v1/page"})
	fmt.Println(res.Status, string(res.Body), err)
	_, err = egress.Do(context.Background(), dial.Request{URL: "http://169.254.169.254/latest/meta-data"})
	fmt.Println(err)
	// Output:
	// 200 hello <nil>
	// dial: GET http://169.254.169.254/latest/meta-data refused: no rule allows it
}
