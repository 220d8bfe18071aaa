// Package archive packs and unpacks the files of a bundle. What it reads may be hostile: it
// is bounded, and has neither links nor names that lead elsewhere.
package archive
