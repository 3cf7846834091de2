# The whole of the project by name. `make help` lists the targets.
# Everything that is built goes to bin/, and a second run finds it there.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN      := $(CURDIR)/bin
# Without a tag there is no version yet, but what is built can still be told apart.
VERSION  ?= $(shell git describe --tags --match 'v*' --dirty 2>/dev/null || git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null | sed 's/^/v0.0.0-0.g/' || echo dev)
LDFLAGS  := -s -w -X main.version=$(VERSION)
SANDBOX  := $(BIN)/sched-sandbox
SCHEDULER := $(BIN)/placement-scheduler
# Everything is compiled as it is released. Go keeps what it compiled by these settings:
# with others for a part of it, all of Kubernetes would be compiled twice.
export CGO_ENABLED = 0
export GOFLAGS := -trimpath $(GOFLAGS)
export SCHED_SANDBOX_BIN = $(SANDBOX)
export SCHED_SCHEDULER_BIN = $(SCHEDULER)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

.PHONY: build
build: ## build the plugin into bin/ (first time about 4 minutes)
	@[ -e $(BIN)/kubectl-sched ] || echo "building kubectl-sched: about 4 minutes the first time on two cores"
	go build -ldflags '$(LDFLAGS)' -o $(BIN)/kubectl-sched ./cmd/kubectl-sched

.PHONY: sandbox
sandbox: ## build the control plane on loopback into bin/ (first time about 10 minutes)
	@[ -e $(SANDBOX) ] || echo "building sched-sandbox (API server, controllers, scheduler, etcd, kwok): about 11 minutes the first time on two cores"
	go build -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$(go list -m -f '{{.Version}}' k8s.io/kubernetes)" -o $(SANDBOX) ./cmd/sched-sandbox

.PHONY: scheduler
scheduler: ## build the bundled scheduler into bin/
	@[ -e $(SCHEDULER) ] || echo "building placement-scheduler: about 4 minutes the first time on two cores"
	go build -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$(go list -m -f '{{.Version}}' k8s.io/kubernetes)" -o $(SCHEDULER) ./cmd/placement-scheduler

.PHONY: demo
demo: build sandbox ## the main job on a real API server, step by step; ends by itself
	@test/demo/demo.sh

.PHONY: run-it-yourself
run-it-yourself: sandbox ## a scheduler plugin in five steps: Filter, Score, weight, and a slow Filter
	@examples/run-it-yourself/run.sh

.PHONY: test
test: sandbox scheduler ## everything that CI holds the project to (first time about 45 minutes, then 25)
	@test/run.sh

.PHONY: failover
failover: sandbox scheduler ## kill the leading scheduler 20 times while it places gangs, as make test does 4 times
	SCHED_TEST_KILLS=20 go test ./test/scheduler -count 1 -timeout 30m -run TestKilledLeader -v

.PHONY: fidelity
fidelity: sandbox scheduler ## 1,000 generated cases: does the simulator say what the scheduler does (about 40 minutes; make test runs 100)
	go test ./test/fidelity -count 1 -timeout 120m -v -run TestSimulatorFollowsScheduler -args -cases 1000 -agree 1 -seed $(or $(SEED),1)

.PHONY: fuzz
fuzz: ## each fuzz test for FUZZTIME (5m) instead of the smoke run of make test
	@test/fuzz.sh $(or $(FUZZTIME),5m) all

.PHONY: bench
bench: build sandbox scheduler ## speed and memory, as ratios against a baseline in the same run
	@go run ./test/bench

.PHONY: lint
lint: $(BIN)/golangci-lint $(BIN)/cue ## golangci-lint (gofumpt, depguard, vet, staticcheck …), cue fmt and vet, generated files
	$(BIN)/golangci-lint run ./...
	cd test/browser && $(BIN)/golangci-lint run ./...
	@test/cuevet.sh
	@$(MAKE) --no-print-directory verify

.PHONY: screenshots
screenshots: build ## the pictures of docs/images, from a real review (needs a Chromium)
	@test/screenshots.sh

.PHONY: vulncheck
vulncheck: $(BIN)/govulncheck ## known vulnerabilities in what we link (needs the network)
	$(BIN)/govulncheck ./...

# What is released says when it was last changed by its commit, not by the clock.
RELEASE = SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) go run ./cmd/release -version $(VERSION) -commit $$(git rev-parse HEAD) -dist dist $(if $(PLATFORMS),-platforms $(PLATFORMS))

.PHONY: release
release: ## write archives of the plugin, checksums and krew's manifest to dist/ (VERSION=v1.2.3; PLATFORMS=linux/amd64 for one; each about 4 minutes the first time)
	$(RELEASE) archives

.PHONY: image
image: ## write the scheduler's image to dist/, without Docker (VERSION=v1.2.3; PLATFORMS=linux/amd64 for one)
	$(RELEASE) image

.PHONY: generate
generate: ## write docs/reference and everything else that comes from the code
	go run ./docs/generate

.PHONY: verify
verify: ## fail if a generated file is not current
	go run ./docs/generate -check

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BIN) dist

# The tools are pinned in a module of their own, so that they add nothing to ours.
$(BIN)/golangci-lint $(BIN)/cue $(BIN)/govulncheck: tools/go.mod
	@echo "building $(@F): up to 3 minutes the first time"
	cd tools && go build -o $@ $$(awk -v n=/$(@F)$$ '$$1 ~ n {print $$1}' go.mod | head -1)
