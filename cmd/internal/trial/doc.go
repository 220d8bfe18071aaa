// Package trial calls the tools of a WASM module as the gate would, for those who write them: no
// policy is asked, nothing is recorded, and in the cases of `sandbox check` all that is around the
// module is made up.
//
// call.go makes a call, trial.go the calls of cases, and manifest.go reads and advises on manifests.
package trial
