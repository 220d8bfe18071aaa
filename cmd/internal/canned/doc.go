// Package canned answers HTTP requests of a tool under test within the process.
package canned
