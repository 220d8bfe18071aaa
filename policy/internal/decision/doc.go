// Package decision reads decisions, and the obligations in them, as the rules of a policy make
// them. A value that it does not know is an error, because the gateway could not do what the rule
// asks for.
package decision
