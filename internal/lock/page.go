package lock

// Page is the page of an app. Its document has what the page asks of its host, and its HTML.
const Page Kind = "ui"

var pageKind = kind{Kind: Page, subject: "page"}
