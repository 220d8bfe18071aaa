package lock

import (
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
)

// Page is the page of an app. Its document has what the page asks of its host, and its HTML.
const Page Kind = "ui"

var pageKind = kind{Kind: Page, subject: "page", meaning: pageMeaning}

// pageMeaning tells how much of the HTML there is: a diff shows only where it begins to differ.
func pageMeaning(old, now gate.Doc) []string {
	was, is := len(old.Get("html").Text()), len(now.Get("html").Text())
	if old.Get("html").Digest() == now.Get("html").Digest() {
		return nil
	}
	return []string{fmt.Sprintf("the page's HTML had %d bytes and has %d; if the server makes it anew for each read, apps: {pin: policy} pins what it asks for only", was, is)}
}

// htmlLast puts what a page asks of its host before its HTML, which can be long.
func htmlLast(a, b Change) int {
	last := func(c Change) int {
		if c.Pointer == "/html" {
			return 1
		}
		return 0
	}
	return last(a) - last(b)
}
