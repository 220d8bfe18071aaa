// Package sarif writes the findings of a scan for tools that read SARIF.
package sarif
