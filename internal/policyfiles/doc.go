// Package policyfiles makes of the files and bundles that a configuration names the policy
// of a gateway: it reads and watches files, fetches and verifies bundles and keeps the last
// good one of each, and finds the newest with which a policy loads.
package policyfiles
