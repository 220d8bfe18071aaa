// Package modules tests tools that run in the sandbox. It has tests only.
package modules
