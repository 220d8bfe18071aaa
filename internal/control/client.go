package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/wasmgate/wasmgate/internal/control/socket"
)

// ErrNotRunning says that no gateway listens on the state folder.
var ErrNotRunning = errors.New("no wasmgate runs on this configuration")

// A Client asks the gateway that runs on a state folder.
type Client struct {
	state string
	http  *http.Client
}

// Dial returns a client of the gateway that runs on a state folder. The error
// is [ErrNotRunning] if there is none.
func Dial(ctx context.Context, state string) (*Client, error) {
	probe, err := socket.Dial(ctx, state)
	if err != nil {
		return nil, ErrNotRunning
	}
	probe.Close()
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return socket.Dial(ctx, state) }}
	return &Client{state: state, http: &http.Client{Transport: t}}, nil
}

// Close frees the client's connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Call sends a request and decodes its answer into result. The error is an
// [*Error] if the gateway answered with one.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	return c.CallNoted(ctx, method, params, result, nil)
}

// CallNoted is Call, and gives note what the gateway tells meanwhile, see [Note]. A nil
// note listens to nothing.
func (c *Client) CallNoted(ctx context.Context, method string, params, result any, note func(json.RawMessage)) error {
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://control"+pathMethod+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if note != nil {
		r.Header.Set("Accept", linesType)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return unanswered(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return answered(resp)
	}
	if resp.Header.Get("Content-Type") == linesType {
		return readLines(resp.Body, result, note)
	}
	if err := json.NewDecoder(resp.Body).Decode(result); err != nil {
		return unanswered(err)
	}
	return nil
}

// unanswered says why there is no answer: the gateway may have ended before it gave one.
func unanswered(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return errors.New("the gateway ended before it answered; the request may have been carried out")
	}
	return fmt.Errorf("ask the running gateway: %w", err)
}

// answered returns the error that the gateway answered with.
func answered(resp *http.Response) error {
	e := new(Error)
	if err := json.NewDecoder(resp.Body).Decode(e); err != nil {
		return fmt.Errorf("ask the running gateway: HTTP %d", resp.StatusCode)
	}
	return e
}

// Relay connects an MCP client that speaks on in and out to the gateway, for the
// principal as, which is offered what is in one of the groups, or all if there are none,
// until the gateway has ended the connection: it does so once in has ended. The error is
// an [*Error] if the gateway refused the client. What is read from in after the gateway
// has gone is lost.
func (c *Client) Relay(ctx context.Context, as string, groups []string, in io.Reader, out io.Writer) error {
	conn, err := socket.Dial(ctx, c.state)
	if err != nil {
		return ErrNotRunning
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	path := pathRelay
	if len(groups) > 0 {
		path = pathNarrowed
	}
	query := url.Values{"as": {as}, "group": groups}.Encode()
	_, err = fmt.Fprintf(conn, "POST %s?%s HTTP/1.1\r\nHost: control\r\nConnection: Upgrade\r\nUpgrade: mcp\r\nContent-Length: 0\r\n\r\n", path, query)
	if err != nil {
		return err
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return answered(resp)
	}
	go func() { // ends with in, which the caller ends
		_, _ = io.Copy(conn, in)
		_ = conn.(*net.UnixConn).CloseWrite()
	}()
	_, err = io.Copy(out, r)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
