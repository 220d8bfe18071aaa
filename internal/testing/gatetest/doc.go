// Package gatetest has what tests of several packages need to make calls through a gate.
package gatetest
