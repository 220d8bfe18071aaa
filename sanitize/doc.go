// Package sanitize neutralizes text of a stranger, so that it is safe to show to a model, a
// terminal, a browser or a renderer of Markdown.
//
// A [Sanitizer] treats one decoded string at a time, in fixed order: control
// characters and terminal sequences; hidden and bidirectional characters; marks and
// full-width letters that disguise words; white space that pushes text out of view;
// control tokens of chat templates; and what a page or a renderer would act on, as
// the [Profile] says. It goes on until nothing changes any more, so that no step
// puts together what another would have taken apart.
//
// Text in which nothing was found comes back as it is, the same string.
//
// # What is changed, and how little
//
// Markup and links that act are neutralized, and stay readable: a tag gets a space after its angle,
// a link one between its brackets, a reference to an image one after its exclamation mark. A page
// takes them for text then. Text that could not stay without harm (control characters, hidden
// characters, control tokens of models) is replaced by a marker such as "[removed: control]", and
// removals of one kind that touch share one. Colours of terminals, and single hidden characters
// within a word, go without a marker, which would tear the word apart. A [Finding] reports each
// change.
//
// # No place is exempt
//
// The profile [Text] acts wherever there is a tag or a link: between backticks, in code fences, in
// comments, in what looks like a program. Readers disagree on where those begin and end, and the
// author of a text chooses how it looks. Source code has the profile [Code], which keeps what it
// must keep, and which is chosen by where a text comes from, never by how it looks.
//
// A tag is judged as it is written, and as it is read once a renderer has taken the marks of
// quotations away from its lines, and once each white space and line end that is not ASCII is a
// plain one. A tag is one if HTML or Markdown says so. A construct that has no end yet, or that
// several readers may read in several ways, is taken for the most harmful.
//
// # Pieces
//
// Strings of one document, or contents of one result, may be shown side by side. A
// text that is harmless alone but [Sanitizer.Open] may be completed by another:
// [Sanitizer.Inert] and [Sanitizer.Together] look at what they make together.
//
// # What it does not do
//
// It does not read prose: an instruction in plain words is text like any other, and so are letters
// of one script that look like those of another. It does not judge the text that a link to an
// ordinary page shows, and by default such a link stays.
package sanitize
