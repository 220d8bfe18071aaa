package app

import (
	"context"
	"net/http"
	"time"
)

// A Desk serves those who run the gateway.
type Desk interface {
	http.Handler
	// OverSocket is its API for who may open the control socket.
	OverSocket() http.Handler
	// Run does what goes on beside requests, until ctx ends.
	Run(ctx context.Context)
	// URL is a URL of the console by a name that only its operator knows.
	URL(base string) string
	// SignIn makes a link below url, and a code, by which one browser signs in.
	SignIn(url string) SignIn
}

// A SignIn is how a browser signs in, once.
type SignIn struct {
	URL   string    `json:"url"`
	Code  string    `json:"code"`
	At    string    `json:"at"` // where the code can be pasted
	Until time.Time `json:"until"`
}
