// Package gatetest helps tests of several packages to make calls through a gate.
package gatetest
