# Short names for the scripts of this repository. docs/internals/development.md lists what each runs.

.PHONY: help build test check nightly bench release

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the program and the hook into bin/
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/wasmgate ./cmd/wasmgate-hook

test: ## run the short tests, as you do while you work
	go test -short ./...

check: ## run everything that a change must pass
	.ci/run

nightly: ## run what takes hours
	.ci/nightly

bench: ## measure what a call costs
	.ci/speed

release: ## build release archives: make release VERSION=v1.2.3 KEY=FILE
	.ci/release $(VERSION) $(KEY)
