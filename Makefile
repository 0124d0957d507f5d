# Package managers install everything into .cache/, with checksums. It is also where everything is built, except the functions
# (dist/) and the template of make synth (cdk.out/). `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Two jobs: packages are downloaded while Kubernetes builds, and the stack is synthesized while Karpenter builds. Builds
# that share packages (the Kubernetes libraries, the AWS SDK) run one after the other.
MAKEFLAGS += --no-builtin-rules --jobs=2

CACHE := $(CURDIR)/.cache
BIN   := $(CACHE)/bin
CDK   := $(CACHE)/npm/node_modules/.bin/cdk

# One set of flags for all modules, so that they share Go's build cache.
export GOFLAGS := -trimpath -buildvcs=false
export CGO_ENABLED := 0
# Go's compiler and the tests spend 8 to 20% less CPU with rarer collections. The largest compilation takes 4.4 GB instead of 3.4.
# What measures Sawhorse keeps Go's default, as in Lambda.
export GOGC ?= 400
bench load cost latency: export GOGC :=
# The tests of package k8s and of the steps in the cluster start the API server from this binary.
export SAWHORSE_CLUSTER_BINARY := $(BIN)/cluster

# The CDK's validation of its own output takes 10 s for each synth. The second variable silences the warning about
# Node.js 20, which is sufficient here; its value names that version.
export CDK_VALIDATION := false
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20
export CDK_DISABLE_CLI_TELEMETRY := 1

# Targets that run many scripts use half of AWS's lags (docs/sandbox.md), and the one that is run after each change none. The demo,
# and scripts that are run by name, use the full lags.
quick quick-story: export LAG ?= 0
test life alone deployment upgrades rights chaos cost latency load: export LAG_SCALE ?= 0.5

# How many sandboxes take the scripts of a target at once.
SANDBOXES ?= 5

# Lambda's name for the architecture of this machine.
HOST_ARCHITECTURE := $(shell sandbox/architecture.sh)
ARCHITECTURE ?= arm64

# What `sawhorse version` prints; empty outside of a git checkout.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)

KUBERNETES := v1.35.3
KUBERNETES_FLAGS := -s -w \
  -X k8s.io/component-base/version.gitVersion=$(KUBERNETES) \
  -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35 \
  -X k8s.io/component-base/version.gitTreeState=clean

## demo: run the whole story on a new local cluster and a local AWS, then end them
.PHONY: demo
demo: parts
	@$(BIN)/sandbox demo

## sandbox: start the same, with the stack deployed and a rack and a cluster named demo, and leave it running
.PHONY: sandbox
sandbox: parts
	@$(BIN)/sandbox up

## sandbox-down: end the sandbox
.PHONY: sandbox-down
sandbox-down:
	@if [ -x $(BIN)/sandbox ]; then $(BIN)/sandbox down; fi

# go test takes a package's results from its cache as long as its code is the same and, of the files and folders that its tests
# read or looked at themselves while they ran, those inside the package's own module: not what a TestMain reads before m.Run, not
# what another process reads, and nothing outside of the module. So -count=1 runs each time what reads files of another module
# (internal/architecture holds that), and tests that start Python look at its files. The tests of the steps controller and
# nodepools take longest and come first, so that others run beside them.
## test: unit tests, tests of the state machine and the template, and the main end-to-end scripts
.PHONY: test
test: parts
	go test ./internal/steps/controller ./internal/steps/nodepools ./...
	go test -C tools ./mutants
	go test -C tools/karpenter -count=1 .
	go test -C tools/prometheus -count=1 .
	go test -C examples -count=1 .
	cd sandbox && go test $$(go list ./... | grep -vE '/(e2e(/(life|deployment|upgrades|drifts))?|documents|audit|interpreter)$$')
	cd sandbox && go test -count=1 ./documents ./audit ./interpreter
	cd sandbox && go test -count=1 -timeout 30m -parallel $(SANDBOXES) ./e2e

# Without the API server, whose tests make the same calls one after the other; with it if RACE_CLUSTER is the path of the cluster
# binary (.ci/run). The UNIT_PACKAGES leave out the CDK's package, for which its JavaScript runtime has races of its own.
## race: the unit tests that need no API server, with the race detector (it needs a C compiler)
.PHONY: race
race: prerequisites
	CI= SAWHORSE_CLUSTER_BINARY=$(RACE_CLUSTER) CGO_ENABLED=1 go test -race $(UNIT_PACKAGES)

# go test runs one fuzz target at a time. To make each input that covers something new smaller takes a minute otherwise: all the time
# there is. Up to Go 1.26 the end of that time is now and then told as a failure (golang/go#75804), with this line and no input.
## fuzz: each fuzz target for FUZZTIME (20s) beyond its recorded inputs
.PHONY: fuzz
fuzz: prerequisites
	@mkdir -p $(CACHE)
	@git grep -oE '^func Fuzz[A-Za-z]+' -- '*_test.go' | while IFS=: read -r file target; do \
	  go test ./$$(dirname $$file) -run '^$$' -fuzz "^$${target#func }$$" -fuzztime $(or $(FUZZTIME),20s) -fuzzminimizetime 10x 2>&1 | tee $(CACHE)/fuzz.log || \
	  grep -A1 '^--- FAIL' $(CACHE)/fuzz.log | grep -qx '    context deadline exceeded' || exit 1; done

## life: the longer end-to-end scripts (turning Karpenter on and off, interruptions, problems with nodes), or those that SCRIPTS matches
.PHONY: life
life: parts
	cd sandbox && go test -count=1 -timeout 120m -parallel $(SANDBOXES) -run '$(or $(SCRIPTS),.)' ./e2e/life

## deployment: the end-to-end scripts for an upgrade of the stack from an earlier commit (UPGRADE_FROM), and its removal
.PHONY: deployment
deployment: parts
	cd sandbox && go test -count=1 -timeout 40m ./e2e/deployment

## upgrades: the end-to-end scripts with other versions of Karpenter, whose controllers it builds (15 minutes the first time)
.PHONY: upgrades
upgrades: parts $(BIN)/karpenter-1.12.1 $(BIN)/karpenter-1.14.3 $(BIN)/karpenter-1.15.0 $(BIN)/karpenter-1.8.6 $(CACHE)/charts-1.8.6/made $(BIN)/helm
	cd sandbox && go test -count=1 -timeout 90m ./e2e/upgrades

## rights: check that the functions have exactly the permissions that make test and make life needed; UPDATE=yes records it
.PHONY: rights
rights: parts
	@$(CACHE)/ministack/bin/python -B sandbox/rights/judge.py $(if $(UPDATE),--update) --template $(CACHE)/cdk.out/Sawhorse.template.json --proof cdk/testdata/proof.json \
	  $(wildcard $(patsubst %,$(CACHE)/%/*/decisions.jsonl,e2e e2e-first e2e-life e2e-life-first))
	@$(if $(UPDATE),go test ./cdk -run PermissionsDocument -update)

## alone: run each script of make test and make life on a new sandbox, in a random order; SHUFFLE=SEED repeats an order
.PHONY: alone
alone: parts
	cd sandbox && SANDBOX_ALONE=yes go test -count=1 -p 1 -timeout 120m -parallel $(SANDBOXES) -shuffle $(or $(SHUFFLE),on) ./e2e ./e2e/life

# Go's cache of test results knows what a change can affect: the results of all other packages are taken from there. docs/sandbox.md
# says what -short leaves out.
## quick: after a change, the root module's tests that it can affect, with the API server, and beside them the story
.PHONY: quick quick-tests quick-story
quick: quick-tests quick-story
quick-tests: go-parts
	go test -short -vet=off ./internal/steps/controller ./internal/steps/nodepools ./statemachine/model ./... # make lint vets
quick-story: parts
	cd sandbox && go test -count=1 -run '^TestStory$$' ./e2e

# Without the variable, tests that need an API server are skipped.
UNIT_LOG := $(CACHE)/unit.log

## unit: the tests that need neither a sandbox nor an API server; it says how many tests it left out
.PHONY: unit
unit: prerequisites
	@mkdir -p $(CACHE)
	@CI= SAWHORSE_CLUSTER_BINARY= go test -v $(UNIT_PACKAGES) > $(UNIT_LOG) || { grep -vE '^(=== |ok| *--- (PASS|SKIP))' $(UNIT_LOG); exit 1; }
	@grep '^ok' $(UNIT_LOG)
	go test -C tools/karpenter -count=1 .
	go test -C tools/prometheus -count=1 .
	@echo "Left out: $$(grep -c -e '--- SKIP' $(UNIT_LOG)) tests that need an API server, and all end-to-end scripts (make quick, make test)"

UNIT_PACKAGES ?= ./events ./statemachine ./cmd/... ./functions/... ./internal/...

## e2e NAME=Story: one end-to-end script by name; with SANDBOX_ENV=.cache/sandbox.env it uses the sandbox of make sandbox
.PHONY: e2e
e2e: parts
	@git grep -qE '^func Test$(NAME)\(' -- sandbox/e2e || { echo "no end-to-end script is named $(NAME): docs/sandbox.md lists them" >&2; exit 1; }
	cd sandbox && $(if $(SANDBOX_ENV),SANDBOX_ENV=$(abspath $(SANDBOX_ENV))) go test ./e2e/... -count=1 -p 1 -timeout 60m -v -run '^Test$(NAME)$$'

## chaos: inject a fault at each call of enabling, changing and disabling, then random pairs; docs/reliability.md has its settings
.PHONY: chaos
chaos: $(BIN)/measure
	@$(BIN)/measure chaos

## load: under AWS's default rates, write 100 times to one rack, turn on and change LOAD_RACKS (100) racks, and run an hour of the schedule with LOAD_LISTED (1000) in the table
.PHONY: load
load: $(BIN)/measure
	@$(BIN)/measure load

## cost: count what each kind of pass takes and what AWS charges for it; fail if a month of a rack costs too much
.PHONY: cost
cost: $(BIN)/measure
	@$(BIN)/measure cost

## latency: measure how long LATENCY_ROUNDS (12) writes to a parameter take until the NodePool has them, compared with kubectl patch
.PHONY: latency
latency: $(BIN)/measure
	@$(BIN)/measure latency

## measure-test: the unit tests of what only measures (chaos, load, cost, latency), a module of its own
.PHONY: measure-test
measure-test: prerequisites
	go test -C sandbox/measure ./...

## bench: benchmark the validation of parameters (one rack, and 10,000 lines of sawhorse check --batch)
.PHONY: bench
bench: prerequisites
	go test ./internal/validation -run '^$$' -bench .
	go test ./cmd/sawhorse -run '^$$' -bench . -benchtime 3x

## lint: gofmt, lines of at most 140 columns, vet and staticcheck
.PHONY: lint
lint: prerequisites
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	@if git grep -nE '^.{141,}' -- '*.go'; then echo "these lines have more than 140 columns" >&2; exit 1; fi
	go vet ./... && go tool -modfile=tools/go.mod staticcheck ./...
	cd tools && go vet ./... && go tool staticcheck ./...
	cd tools/karpenter && go vet ./... && go tool -modfile=../go.mod staticcheck ./...
	cd tools/prometheus && go vet ./... && go tool -modfile=../go.mod staticcheck ./...
	cd examples && go vet ./... && go tool -modfile=../tools/go.mod staticcheck ./...
	cd sandbox && go vet ./... && go tool -modfile=../tools/go.mod staticcheck ./...
	cd sandbox/measure && go vet ./... && go tool -modfile=../../tools/go.mod staticcheck ./...

# The two lists are compared, so that it also works in a tree with changes that are not committed.
CHANGED := { git ls-files --modified --others --exclude-standard -z | xargs -0 -r sha256sum 2>&1 || true; }

## verify: write everything that is generated again (documents, golden files, the picture, what comes from Karpenter's module), and fail if that changes a file
.PHONY: verify
verify: prerequisites
	@mkdir -p $(CACHE) && $(CHANGED) > $(CACHE)/verify
	go test ./cdk -run 'PermissionsDocument|Picture' -update
	go test ./cmd/sawhorse -update
	go test ./internal/doctor -run Documentation -update
	go test ./internal/params -run 'Documentation|InstanceTypes' -update
	go test ./internal/pass/report -run Documentation -update
	go test ./internal/plan -run Golden -update
	go test ./internal/plan/charts -run Golden -update
	SAWHORSE_CLUSTER_BINARY= go test ./internal/karpenter -run Documentation -update
	go test -C tools/karpenter . -run DefaultIsTheModules -update
	go test -C tools/prometheus . -run 'Resource|Pictures' -update
	@$(CHANGED) | diff $(CACHE)/verify - || { echo "make verify: these files were not up to date; they are now" >&2; exit 1; }

## released: at a release, record what the next one must not lose: hashes of the pools, actions of the permissions boundaries
.PHONY: released
released: prerequisites
	go test ./cdk -run BoundariesLoseNothing -release
	go test ./internal/plan/nodes -run AnUpgradeOfSawhorseReplacesNoNode -release

# A check whose sources cannot all be reached says which, and exits with 3 if it has found nothing in the others. make fails
# then, and with UNREACHED=pass it goes on (.ci/run).
GO_ON := $(if $(filter pass,$(UNREACHED)),|| [ $$? -eq 3 ])

# Newer modules of Karpenter want a newer toolchain, only to be downloaded. Go compares modules with the checksums that the
# catalogue records, and those of a new version with its checksum database.
KARPENTER_TOOLCHAIN ?= go1.26.10
GENERATE_KARPENTER := cd tools/karpenter && $(BIN)/catalogue -toolchain $(KARPENTER_TOOLCHAIN)

.PHONY: catalogue
catalogue: prerequisites
	@go build -C tools/karpenter -o $(BIN)/catalogue .

## karpenter: write what the catalogue has of a version of Karpenter (VERSION=1.14.3; CORE=… if its core module cannot be had)
.PHONY: karpenter
karpenter: catalogue
	@$(GENERATE_KARPENTER) $(if $(CORE),-core '$(CORE)') '$(VERSION)'

## karpenter-verify: download the modules of all versions, write the whole catalogue again, and fail if that changes a file
.PHONY: karpenter-verify
karpenter-verify: catalogue
	@$(CHANGED) > $(CACHE)/karpenter-verify
	@($(GENERATE_KARPENTER) $(notdir $(wildcard internal/karpenter/catalogue/[0-9]*))) $(GO_ON)
	@$(CHANGED) | diff $(CACHE)/karpenter-verify - || { echo "make karpenter-verify: these files were not what the modules say; they are now" >&2; exit 1; }

## audit: look for known vulnerabilities; `tools/audit.py .cache/audit/bin/pip-audit` exits 1 if there are some, 3 if a database is out of reach
.PHONY: audit
audit: prerequisites $(CACHE)/audit/installed
	@tools/audit.py $(CACHE)/audit/bin/pip-audit $(GO_ON)

## build: build the functions for AWS (ARCHITECTURE=arm64 or x86_64) and the sawhorse command
.PHONY: build
build: prerequisites
	go run ./cdk/bundle -architecture $(ARCHITECTURE)
	go build -ldflags '-s -w -X main.built=$(VERSION)' -o $(BIN)/sawhorse ./cmd/sawhorse

## reproducible: build the functions again in another folder and compare (set GOCACHE=DIR to start with an empty build cache)
.PHONY: reproducible
reproducible: build
	@rm -rf $(CACHE)/again && mkdir -p $(CACHE)/again/elsewhere && git ls-files -z | xargs -0 cp --parents -t $(CACHE)/again/elsewhere
	@cd $(CACHE)/again/elsewhere && go run ./cdk/bundle -architecture $(ARCHITECTURE)
	@cd dist/$(ARCHITECTURE) && for zip in *.zip; do cmp $$zip $(CACHE)/again/elsewhere/dist/$(ARCHITECTURE)/$$zip; sha256sum $$zip; done
	@rm -rf $(CACHE)/again

## synth: write the CloudFormation template into cdk.out
.PHONY: synth
synth: build $(CACHE)/npm/installed
	$(CDK) synth --quiet -c architecture=$(ARCHITECTURE)

## deploy: deploy into the AWS account of the current credentials
.PHONY: deploy
deploy: build $(CACHE)/npm/installed
	$(CDK) deploy -c architecture=$(ARCHITECTURE)

## diff: show what make deploy would change
.PHONY: diff
diff: build $(CACHE)/npm/installed
	$(CDK) diff -c architecture=$(ARCHITECTURE)

## rollback: have new passes run by the release before the one in force (TO=VERSION: by that of a version of the state machine)
.PHONY: rollback
rollback:
	@tools/rollback.sh '$(TO)'

## acceptance: run the story on a cluster of the current AWS account (CLUSTER=NAME, or a new one) and write a report
.PHONY: acceptance
acceptance: build $(CACHE)/npm/installed
	@tools/acceptance.sh

## help: this list
.PHONY: help
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST) | awk -F': ' '{printf "  make %-16s %s\n", $$1, $$2}'

# The parts of the sandbox. Go itself decides what has to be built again.
.PHONY: parts
parts: prerequisites $(BIN)/cluster $(BIN)/karpenter go-parts $(CACHE)/ministack/installed $(CACHE)/venv/installed $(CACHE)/npm/installed $(CACHE)/cdk.out/synthesized

.PHONY: prerequisites
prerequisites:
	@sandbox/prerequisites.sh

.PHONY: go-parts
go-parts: $(BIN)/cluster
	@echo "Building the functions, the command and the sandbox …" >&2
	@go run ./cdk/bundle -architecture $(HOST_ARCHITECTURE)
	@go build -ldflags '-s -w -X main.built=$(VERSION)' -o $(BIN)/sawhorse ./cmd/sawhorse
	@cd sandbox && go build -ldflags '-s -w' -o $(BIN)/sandbox ./cmd/sandbox

# What only measures is a module of its own, which the tests of others do not build.
.PHONY: $(BIN)/measure
$(BIN)/measure: parts
	@cd sandbox/measure && go build -ldflags '-s -w' -o $@ ./cmd/measure

# Linking these takes 10 s each, so they are built again only when their own sources change.
$(BIN)/cluster: sandbox/go.mod sandbox/go.sum $(wildcard sandbox/cmd/cluster/*.go sandbox/cmd/cluster/*/*.go sandbox/cmd/kubectl/*.go sandbox/stages/*) | prerequisites
	@echo "Building Kubernetes (5 to 10 minutes the first time) …" >&2
	@cd sandbox && go build -ldflags '$(KUBERNETES_FLAGS)' -o $(BIN)/ ./cmd/cluster ./cmd/kubectl

$(BIN)/karpenter: $(wildcard sandbox/karpenter/*.go) sandbox/karpenter/go.mod sandbox/karpenter/go.sum | go-parts
	@echo "Building Karpenter (5 minutes the first time) …" >&2
	@cd sandbox/karpenter && go build -ldflags '-s -w' -o $@ .

# Other versions of Karpenter for the same sources. 1.15.0 wants a newer toolchain, which Go downloads.
$(BIN)/karpenter-1.12.1 $(BIN)/karpenter-1.14.3: KARPENTER_BUILD := GOTOOLCHAIN=$(KARPENTER_TOOLCHAIN) go build -tags karpenter1.12
$(BIN)/karpenter-1.15.0: KARPENTER_BUILD := GOTOOLCHAIN=$(KARPENTER_TOOLCHAIN) go build -tags karpenter1.15
$(BIN)/karpenter-1.8.6: KARPENTER_BUILD := go build
$(BIN)/karpenter-%: sandbox/karpenter/%.mod sandbox/karpenter/%.sum $(wildcard sandbox/karpenter/*.go) | $(BIN)/karpenter
	@echo "Building Karpenter $* (5 minutes the first time) …" >&2
	@cd sandbox/karpenter && $(KARPENTER_BUILD) -modfile=$*.mod -ldflags '-s -w -X main.version=$*' -o $@ .

# The charts of 1.8.6. Its Go module lacks the CRDs in them, because they are symbolic links in Karpenter's repository.
$(CACHE)/charts-1.8.6/made: sandbox/karpenter/1.8.6.mod | $(BIN)/karpenter-1.8.6
	@rm -rf $(@D) && mkdir -p $(@D) && cd sandbox/karpenter && module=$$(go list -m -modfile=1.8.6.mod -f '{{.Dir}}' github.com/aws/karpenter-provider-aws) && \
	  cp -r --no-preserve=mode $$module/charts/karpenter $$module/charts/karpenter-crd $(@D)/ && mkdir -p $(@D)/karpenter-crd/templates && \
	  cp --no-preserve=mode $$module/pkg/apis/crds/*.yaml $(@D)/karpenter-crd/templates/ && touch $@

$(BIN)/helm: sandbox/helm/go.mod sandbox/helm/go.sum | go-parts
	@echo "Building Helm …" >&2
	@cd sandbox/helm && go build -ldflags '-s -w' -o $@ helm.sh/helm/v4/cmd/helm

$(CACHE)/ministack/installed: sandbox/python/ministack.txt | prerequisites
	@echo "Installing MiniStack …" >&2
	@rm -rf $(@D) && python3 -m venv $(@D) && $(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $< && touch $@

$(CACHE)/venv/installed: sandbox/python/tools.txt | prerequisites
	@echo "Installing moto, the AWS CLI and cfn-lint …" >&2
	@rm -rf $(@D) && python3 -m venv $(@D) && $(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $< && touch $@

# If PyPI cannot be reached, the audit says so: it needs pip-audit for Python's packages only. A package with another checksum
# is an error.
$(CACHE)/audit/installed: sandbox/python/audit.txt | prerequisites
	@echo "Installing pip-audit …" >&2
	@rm -rf $(@D) && python3 -m venv $(@D)
	@if $(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $< 2> $(@D)/log; then touch $@; \
	  else cat $(@D)/log >&2; ! grep -q 'DO NOT MATCH THE HASHES' $(@D)/log; fi

$(CACHE)/npm/installed: package.json package-lock.json | prerequisites
	@echo "Installing the AWS CDK CLI …" >&2
	@mkdir -p $(@D) && cp package.json package-lock.json $(@D)/ && npm ci --ignore-scripts --prefix $(@D) --no-audit --no-fund --loglevel=error >&2 && touch $@

# The stack as the sandbox deploys it: the production stack with other context values.
$(CACHE)/cdk.out/synthesized: $(wildcard cdk/*.go internal/ownership/*.go internal/params/*.go events/*.go) statemachine/reconcile.asl.json cdk.json sandbox/cdk.sh go-parts $(CACHE)/npm/installed
	@lag="$${LAG:-1} $${LAG_SCALE:-1}"; if [ -f $@ ] && [ "$$(cat $@)" = "$$lag" ] && [ -z "$$(find cdk internal/ownership events statemachine cdk.json sandbox/cdk.sh dist/$(HOST_ARCHITECTURE) -maxdepth 1 -newer $@ -type f)" ]; then exit 0; fi; \
	echo "Synthesizing the stack …" >&2; \
	sandbox/cdk.sh synth --quiet --output $(@D) && echo "$$lag" > $@
