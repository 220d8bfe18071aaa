// Package lookalike finds names that a reader takes for one another: an agent
// that is offered read_file and reаd_file, with a Cyrillic letter, may call
// either.
//
// [Skeleton] is that of Unicode Technical Standard 39, section 4: characters of
// one shape become the same. Its table, table.txt, is made from Unicode's confusables.txt by
// maketable.go (go generate), whose licence is in LICENSE-UNICODE. The table
// holds Latin, Greek and Cyrillic letters, full-width forms, and whatever else
// looks like a letter or a digit of ASCII. Other characters stay as they are, and
// combining marks keep their order.
//
// [Alike] compares two names, [Index] one with many: it looks at a few entries
// for each name and not at all pairs.
package lookalike

//go:generate go run maketable.go
