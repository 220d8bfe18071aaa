// Package structure reads texts of tools' results as documents: servers write what they
// have as YAML nearly as often as JSON, and say of neither what it is.
package structure
