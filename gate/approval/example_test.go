package approval_test

import (
	"context"
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
)

// A host application answers the questions of its gateway itself: it shows what is
// pending, and tells what the person has decided.
func Example() {
	ctx := context.Background()
	q, err := approval.New(approval.Options{Recorder: new(log), Hold: -1}) // no call is held
	if err != nil {
		fmt.Println(err)
		return
	}
	call := gate.Question{
		Query: gate.Query{
			Call: &gate.Call{ID: "1", Action: gate.CallTool, Args: gate.MustDoc(`{"to":"bob@example.com"}`), Who: gate.Local()},
			Tool: &gate.Tool{Name: gate.ToolName{Server: "mail", Tool: "send"}, Local: "send"},
		},
		Reasons: []string{"mail leaves"},
	}
	_, err = q.Approve(ctx, call) // as the gate does
	fmt.Printf("%T\n", err)

	for _, r := range q.Pending(ctx) {
		fmt.Println(r.Question.Inquiry().Text())
		if _, err := q.Decide(ctx, r.ID, gate.Approved, "app:alice", ""); err != nil {
			fmt.Println(err)
		}
	}
	a, err := q.Approve(ctx, call)
	fmt.Println("approved by", a.By, err)
	// Output:
	// *gate.Pending
	// May local call send of server mail?
	// - /to: "bob@example.com"
	//
	// Why you are asked: mail leaves
	// The session has read: nothing that is labelled
	// approved by app:alice <nil>
}
