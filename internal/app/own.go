package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/internal/app/handover"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/control"
	"github.com/wasmgate/wasmgate/internal/web/hungup"
)

const (
	// lingerTime bounds how long a gateway that was started for one command stays for
	// other commands.
	lingerTime = 3 * time.Second
	// lookEvery is how often a process looks whether it can become the owner.
	lookEvery = 50 * time.Millisecond
	// maxMoves is how often in a row a client is moved away from gateways that
	// lived for less than settled: what ends them so soon ends the next as well.
	// Before each move it waits for longer, by moveAfter: a process that is being
	// killed may take connections for a while.
	maxMoves  = 10
	settled   = time.Minute
	moveAfter = 50 * time.Millisecond
)

// Find becomes the owner of a configuration, or finds the gateway that is: one
// of the two results is not nil. It waits for an owner that is starting or
// ending. Only is that of [New].
func Find(ctx context.Context, cfg *config.Config, log *slog.Logger, only string) (*App, *Remote, error) {
	giveUp := time.After(startTime)
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		a, err := New(ctx, cfg, log, only)
		if !errors.Is(err, control.ErrHeld) {
			return a, nil, err
		}
		if r, err := Dial(ctx, cfg); err == nil {
			return nil, r, nil
		}
		select {
		case <-again.C:
		case <-giveUp:
			return nil, nil, fmt.Errorf("another process holds %s/lock and does not answer; end it", cfg.State)
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// Shared returns the gateway that runs on a configuration. If there is none it starts one by
// f.Owner, whose standard error it passes on for as long as this process lives.
func Shared(ctx context.Context, cfg *config.Config, f Front) (*Remote, error) {
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	var ended chan error // of the process that was started; nil if none runs
	for {
		if r, err := Dial(ctx, cfg); err == nil {
			return r, nil
		}
		if ended == nil {
			var err error
			if ended, err = begin(f.Owner(), f.Err); err != nil {
				return nil, fmt.Errorf("start a process for the gateway: %w", err)
			}
		}
		select {
		case <-again.C:
		case err := <-ended: // without an error it has found another owner, which ends
			if err != nil {
				return nil, err
			}
			ended = nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Again is the command of this process, with further arguments.
func Again(more ...string) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	return exec.Command(program, append(os.Args[1:len(os.Args):len(os.Args)], more...)...)
}

// begin starts a process that outlives this one.
func begin(owner *exec.Cmd, to io.Writer) (ended chan error, err error) {
	detach(owner)
	stderr, err := owner.StderrPipe() // not this process's own: its reader would wait for the owner's end
	if err != nil {
		return nil, err
	}
	if err := owner.Start(); err != nil {
		return nil, err
	}
	ended = make(chan error, 1)
	go func() { // ends with the owner
		_, _ = io.Copy(to, stderr)
		ended <- owner.Wait()
	}()
	return ended, nil
}

// Own is Find for who stays: it waits for an owner that was started for one command,
// and tells waits of its process.
func Own(ctx context.Context, cfg *config.Config, log *slog.Logger, waits func(pid int)) (*App, *Remote, error) {
	for told := false; ; {
		a, r, err := Find(ctx, cfg, log, "")
		if r == nil {
			return a, nil, err
		}
		s, err := overview.Show.Ask(ctx, r, operation.None{})
		if err == nil && s.Running {
			return nil, r, nil
		}
		r.Close()
		if err == nil && !told {
			waits(s.PID)
			told = true
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// Answer lets other processes ask a gateway that was started for one command, which may
// take long to start its servers. End has their calls and commands end, for a time.
func (a *App) Answer(ctx context.Context) (end func(), err error) {
	socket, err := control.Listen(ctx, a.cfg.State)
	if err != nil {
		return nil, err
	}
	a.clients.last, a.clients.came = func() {}, func() {}
	life, leave := context.WithCancel(context.WithoutCancel(ctx))
	var g sync.WaitGroup
	g.Go(func() {
		if err := control.Serve(life, socket, backend{a}, nil, lingerTime); err != nil {
			a.log.Warn("the gateway cannot answer commands of other processes", "error", err)
		}
	})
	return func() {
		calls, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.Drain)
		defer cancel()
		_ = a.gateway.Drain(calls) // what is left is cut off
		leave()
		g.Wait()
		control.Remove(a.cfg.State)
	}, nil
}

// Follow serves the client of f through the gateway r. When that ends and the
// client is still there, it serves the client on through whichever process
// becomes the owner in its place, which may be this one if f has no Owner: then it is as
// [App.Run], and ends the gateway. The end of ctx is the end of what the client says. A client that
// no longer reads is gone, with its calls. An error for which the client is not served
// is a [*naming.PrincipalError], or says why there is no gateway any more.
func Follow(ctx context.Context, cfg *config.Config, log *slog.Logger, r *Remote, f Front) error {
	client := handover.New(f.In, f.Out, cfg.Limits.Body)
	defer context.AfterFunc(ctx, client.Leave)() // what is under way may end
	served, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	go func() { // ends with served
		<-client.Left()
		for !hungup.Is(f.Out) && served.Err() == nil {
			time.Sleep(lookEvery)
		}
		cut()
	}()
	for moves := 0; ; {
		since := time.Now()
		gone, err := client.Serve(served, func(ctx context.Context, in io.Reader, out io.Writer) error {
			defer r.Close()
			return r.Relay(ctx, f.As, f.Groups, in, out)
		})
		var refused *control.Error
		var who *naming.PrincipalError
		if errors.As(err, &who) || errors.As(err, &refused) {
			return err
		}
		if gone || ctx.Err() != nil {
			return nil
		}
		if time.Since(since) > settled {
			moves = 0
		}
		if moves++; moves > maxMoves {
			return fmt.Errorf("%d gateways on this configuration started and ended, one after the other: start it again with --log-level debug", moves)
		}
		log.Warn("gateway ended")
		select {
		case <-time.After(time.Duration(moves-1) * moveAfter): // at once, the first time
		case <-ctx.Done():
			return nil
		}
		var a *App
		var next *Remote
		if f.Owner != nil {
			next, err = Shared(ctx, cfg, f)
		} else {
			a, next, err = Find(ctx, cfg, log, "")
		}
		if err != nil {
			return err
		}
		if a != nil {
			_, err := client.Serve(ctx, func(ctx context.Context, in io.Reader, out io.Writer) error {
				f.In, f.Out = in, out
				return a.Run(ctx, f)
			})
			return errors.Join(err, a.Close(ctx))
		}
		r = next
	}
}
