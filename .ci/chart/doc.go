// Package chart tests the Helm chart in deploy/helm without a cluster: it renders sets of values, decodes each object
// strictly into the types of Kubernetes, and has wasmgate itself read the configuration.
package chart
