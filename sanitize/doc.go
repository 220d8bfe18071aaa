// Package sanitize makes text that a stranger wrote safe to show to a model, a
// terminal or a browser.
//
// A [Sanitizer] treats one decoded string at a time, in fixed order: control
// characters and terminal sequences; hidden and bidirectional characters; marks and
// full-width letters that disguise words; white space that pushes text out of view;
// control tokens of chat templates; markup, as the [Profile] says; and links to places
// that are not on the list of [Links]. It goes on until nothing changes any more, so
// that no removal puts together what another step would have removed.
//
// Text in which nothing was found comes back as it is, the same string. What was
// removed leaves a marker that people and models can see, such as
// "[removed: script]", and a [Finding]: who reads a file and writes it back can
// tell that something is missing. Removals of one kind that touch share a
// marker. Colour codes of terminals share one for each line; a marker for each
// would hide the text.
//
// # Markup in source code
//
// The profile text removes active markup: what runs, loads, redirects or hides.
// In code fences, in spans between backticks and in what is plainly source code
// it is reported and stays, for code is full of it and worthless without it.
// Whether a line stands in source code is told from the lines around it, not
// from the whole text. An attacker can put markup between lines of code, or into
// a fence; what shows text to a browser must therefore escape it, or use the
// profile strict.
//
// # What it does not do
//
// It does not read prose: an instruction in plain words is text like any other, and so
// are letters of one script that look like those of another. What a link to an ordinary
// page shows is not looked at, and by default such a link stays.
package sanitize
