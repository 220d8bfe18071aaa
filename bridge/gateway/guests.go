package gateway

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/sandbox"
)

// guest makes the server of an endpoint out of a module. One that does not
// compile is that server's fault alone. If compiling takes time, its first connection
// waits for that.
func (m *machine) guest(s *options.Endpoint, guest Guest) {
	guest.Config.Server = true
	guest.Config.Grants = sandbox.Grants{Config: guest.Config.Grants.Config}
	compile := sync.OnceValues(func() (*sandbox.Module, error) { return m.runtime.Compile(m.life, guest.WASM, guest.Config) })
	if !m.later(guest.WASM) {
		if _, err := compile(); err != nil {
			s.Broken = err.Error()
			return
		}
	}
	server, config := s.Server, sandbox.ServeConfig{Args: guest.Args, MaxLine: s.MaxMessage}
	s.Dial = DialStreams(func() (io.ReadCloser, io.WriteCloser, error) {
		code, err := compile() // or what has come of it
		if err != nil {
			return nil, nil, err
		}
		in := sandbox.NewPipe()
		out, stdout := io.Pipe()
		life, end := context.WithCancel(m.life)
		m.serving.Go(func() {
			defer end()
			stdout.CloseWithError(m.serve(life, server, code, in, stdout, config))
		})
		return reading{out, in, end}, in, nil
	})
}

// serve runs a module until its connection or the gateway ends, and with it life. It returns the
// error for a reader of its output.
func (m *machine) serve(life context.Context, server string, code *sandbox.Module, in *sandbox.Pipe, out io.Writer, config sandbox.ServeConfig) error {
	err := code.Serve(life, in, out, config)
	if err == nil || life.Err() != nil {
		return io.EOF
	}
	m.cfg.Log.Warn("server in the sandbox ended", "server", server, "error", err)
	return fmt.Errorf("the server in the sandbox ended: %w", err)
}

// reading is the output of a guest. Closing it ends the guest, whatever it does.
type reading struct {
	*io.PipeReader
	in  *sandbox.Pipe
	end context.CancelFunc
}

func (r reading) Close() error {
	_ = r.in.Close() // cannot fail
	r.end()
	return r.PipeReader.Close()
}
