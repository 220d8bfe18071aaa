// Package gateway tests what a gateway does when its policy, its servers or its clients change, fail or attack. It has tests only.
package gateway
