// Package policyfiles makes of the files and bundles that a configuration names the policy
// of a gateway: it reads and watches files, fetches and verifies bundles and keeps the last
// good one of each, and finds the newest with which a policy loads.
//
//	files, bundles -> Files.Load, Bundle.Read -> Files.Settle: which of them load together -> gateway.Policy
//
// files.go has the files: labels and limits in the words of a policy, the .rego files as one file
// system, and the watch. bundles.go has one bundle: asked for, verified, kept. settle.go goes back
// from the newest bundles to the last good ones. App, the console, doctor and replay ask for it.
package policyfiles
