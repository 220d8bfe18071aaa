// Package step names the steps of a call's way through the gate, in the order in which it
// takes them. The code of a refusal is "refused_" and its step.
package step
