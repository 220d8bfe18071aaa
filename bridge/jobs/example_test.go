package jobs_test

import (
	"context"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/store"
)

// A call is started, and its result fetched later, by the same principal.
func Example() {
	ctx := context.Background()
	db, err := store.Open(ctx, store.Memory) // or the path of a file, to outlive the process
	if err != nil {
		panic(err)
	}
	defer db.Close()
	runner, err := jobs.New(ctx, jobs.Options{Store: db})
	if err != nil {
		panic(err)
	}
	defer runner.Close(context.Background())

	do := func(_ context.Context, c gate.Call) (gate.Result, error) { // a gate's Do
		c.Client.Granted()
		return gate.Result{Doc: gate.MustDoc(`{"content":[{"type":"text","text":"42"}]}`)}, nil
	}
	who := gate.Local()
	job, err := runner.Start(ctx, do, gate.Call{Action: gate.CallTool, Name: "math__answer", Who: who}, 0)
	if err != nil {
		panic(err)
	}
	job, err = runner.Wait(ctx, who.Owner, job.ID)
	if err != nil {
		panic(err)
	}
	_, result, err := runner.Result(ctx, who.Owner, job.ID)
	fmt.Println(job.State, result.Doc, err)

	_, _, err = runner.Result(ctx, gate.Owner{ID: "somebody else"}, job.ID)
	fmt.Println(err.(*jobs.HandleError).Code())
	// Output:
	// completed {"content":[{"type":"text","text":"42"}]} <nil>
	// job_handle_not_found
}
