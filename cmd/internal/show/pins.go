package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/scan"
)

// SeverityColour is that of a finding of the scan.
var SeverityColour = map[scan.Severity]string{scan.High: Bad, scan.Medium: "33", scan.Low: Faint}

// Differences prints how definitions differ from what was approved, and the findings of a scan with
// each change.
func Differences(w io.Writer, all []lock.Difference) {
	for i, d := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printDifference(w, d)
	}
}

// maxValue is the width up to which a value is printed on one line, in bytes.
const maxValue = 100

// printValue prints a value of a definition, on lines of its own if it is long; nothing,
// if there is none.
func printValue(w io.Writer, colour, sign, value string) {
	var lines bytes.Buffer
	if len(value) <= maxValue || json.Indent(&lines, []byte(value), "", "  ") != nil {
		lines.Reset()
		lines.WriteString(value)
	}
	for line := range strings.Lines(lines.String()) {
		fmt.Fprintln(w, Paint(w, colour, sign+strings.TrimSuffix(line, "\n")))
	}
}

func printDifference(w io.Writer, d lock.Difference) {
	what := "is new"
	switch {
	case d.State == lock.StateGone:
		what = "was approved, and is gone"
	case d.State == lock.StateChanged && len(d.Unchanged) > 0:
		what = "has changed since it was approved; only digests of the approved version are known here, and these parts are the same: " + strings.Join(d.Unchanged, ", ")
	case d.State == lock.StateChanged && !d.Known:
		what = "has changed since it was approved; only the digest of the approved version is known here, so this is all of it"
	case d.State == lock.StateChanged:
		what = "has changed since it was approved"
	}
	fmt.Fprintf(w, "%s %s\n", lock.Visible(d.Label), what)
	for _, change := range d.Changes {
		fmt.Fprintf(w, "  %s\n", change.Pointer)
		printValue(w, Bad, "    - ", change.Old)
		printValue(w, Good, "    + ", change.New)
		printFindings(w, change.Findings)
	}
	for i, m := range d.Means {
		if i == 0 && d.Kind != lock.Page {
			fmt.Fprintln(w, "  for callers:")
		}
		fmt.Fprintln(w, "    "+m)
	}
	if len(d.Findings) > 0 {
		fmt.Fprintln(w, "  found in the part that has not changed:")
		printFindings(w, d.Findings)
	}
}

// printFindings prints what the scan finds at a place.
func printFindings(w io.Writer, found []scan.Finding) {
	for _, f := range found {
		fmt.Fprintln(w, Paint(w, SeverityColour[f.Severity], fmt.Sprintf("    ! %s %s at %s: %s", f.Severity, f.Rule, lock.Visible(f.At), lock.Visible(f.Excerpt))))
	}
}
