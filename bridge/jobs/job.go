package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
)

// A State is where a job is in its life: running, and then one of the others.
type State string

// The states of jobs.
const (
	Running   State = "running"
	Completed State = "completed"
	Failed    State = "failed"    // the tool failed, or the gate refused what came of it
	Cancelled State = "cancelled" // by its owner, or by the end of the gateway
)

// A Job is a call that is carried out for a client which comes back for the outcome.
type Job struct {
	// ID begins with the node that made it and cannot be guessed: at most 128 visible
	// ASCII characters.
	ID    string
	Owner gate.Owner
	// Node is the gateway that carries it out, and Boot the run of that gateway.
	Node, Boot string
	Tool       string // as the client named it
	Call       string // ID by which it is recorded
	State      State
	// Code is the outcome as [gate.Code] has it, and Reason, for the client, why there
	// is no result or a failure; both are empty while the job runs.
	Code, Reason string
	Started      time.Time
	Ended        time.Time     // zero while it runs
	Keep         time.Duration // of the outcome, after the end
	Labels       gate.Labels   // that a session learns with the result
	Size         int64         // bytes of the result; 0 if there is none
	// Expired says that the outcome is not kept any more.
	Expired bool
}

// Terminal reports whether the job has ended.
func (j Job) Terminal() bool { return j.State != Running }

// Lost reports whether the job has ended with the gateway that carried it out, so that the outcome
// of the call is unknown.
func (j Job) Lost() bool { return j.State == Failed && j.Code == codes.Cancelled }

// Expires returns when the outcome is given up; zero while the job runs.
func (j Job) Expires() time.Time {
	if !j.Terminal() {
		return time.Time{}
	}
	return j.Ended.Add(j.Keep)
}

// A HandleError says that there is no job of an ID, for the principal that asks, or
// that its outcome is not kept any more.
type HandleError struct {
	ID      string
	Expired bool
}

func (e *HandleError) Error() string {
	if e.Expired {
		return "the outcome of job " + e.ID + " is not kept any more"
	}
	return "no job " + e.ID
}

// The codes of a [HandleError]. They are stable.
const (
	CodeNotFound = "job_handle_not_found"
	CodeExpired  = "job_handle_expired"
)

// Code returns CodeNotFound or CodeExpired.
func (e *HandleError) Code() string {
	if e.Expired {
		return CodeExpired
	}
	return CodeNotFound
}

// ErrRunning says that a job has no outcome yet.
var ErrRunning = errors.New("the job is running")

// ErrTooLarge says that a result is larger than a [Store] keeps.
var ErrTooLarge = errors.New("the result is larger than can be kept")

// Bounds are how much is kept of the jobs of one node. Beyond them the oldest job of the owner that
// has the most goes first: no one can push out what others keep.
type Bounds struct {
	Jobs  int           // that have ended, expired ones included
	Bytes int64         // results together
	After time.Duration // how long an expired job is known as such
}

// Counts are how many jobs a node has.
type Counts struct {
	Running int   `json:"running"`
	Kept    int   `json:"kept"`         // that have ended, and have not expired
	Bytes   int64 `json:"result_bytes"` // of their results
}

// Shared is a [Store] of several nodes.
type Shared interface {
	Store
	// AskCancel asks the node that carries out a job of an owner to end it, for a reason, and
	// CancelsAsked returns the reasons of a node's running jobs by their IDs.
	AskCancel(ctx context.Context, who gate.Owner, id, reason string) error
	CancelsAsked(ctx context.Context, node string) (map[string]string, error)
	// RunningJobs returns the jobs that are kept as running at a node.
	RunningJobs(ctx context.Context, node string) ([]Job, error)
	// LoseJobs ends the jobs of nodes that are gone as failed, and returns how many there were.
	LoseJobs(ctx context.Context, now time.Time, reason string) (int, error)
}

// A Store keeps jobs. It is called concurrently. When a method returns, its change survives the
// process.
type Store interface {
	// AddJob keeps a job that begins.
	AddJob(ctx context.Context, j Job) error
	// EndJob keeps the outcome of a job, if it is kept as running: otherwise it does
	// nothing. The error wraps [ErrTooLarge] if the result is, and then nothing is done.
	EndJob(ctx context.Context, j Job, result gate.Doc) error
	// RemoveJob forgets a job.
	RemoveJob(ctx context.Context, id string) error
	// Job returns a job of an owner, and JobResult its result as well, absent if there
	// is none. The error is a [*HandleError] if that owner has no such job.
	Job(ctx context.Context, who gate.Owner, id string) (Job, error)
	JobResult(ctx context.Context, who gate.Owner, id string) (Job, gate.Doc, error)
	// Jobs returns jobs of an owner, the newest first, at most limit of them: those
	// before the job of the ID after, or the first if it is empty. The error is a
	// [*HandleError] if there is no such job.
	Jobs(ctx context.Context, who gate.Owner, after string, limit int) ([]Job, error)
	// TrimJobs gives up the outcomes of a node's jobs whose time has come, and what is
	// over the bounds.
	TrimJobs(ctx context.Context, node string, now time.Time, b Bounds) error
	// AbandonJobs ends those jobs of a node as failed that another run of it has left
	// running, and returns how many there were.
	AbandonJobs(ctx context.Context, node, boot string, now time.Time, reason string) (int, error)
	// CountJobs counts the jobs of a node.
	CountJobs(ctx context.Context, node string) (Counts, error)
}
