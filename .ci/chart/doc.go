// Package chart tests the Helm chart in deploy/helm without a cluster: it renders sets of values, decodes each object
// strictly into the types of Kubernetes, and has wasmgate itself read the configuration. It also reads the compose files.
package chart
