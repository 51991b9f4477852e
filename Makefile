# The targets of the repository. `make help` lists them. A step of CI and a target here have the same name.

GO        ?= go
# The step lint runs vet on every package and its tests, so that the other steps need not.
# -ldflags=-w leaves out debugging information, which takes a third of the time of linking.
FULL      := -count=1 -timeout 40m -vet=off -ldflags=-w
SHORT     := $(FULL) -short
TOOLCHAIN ?= go1.27.2
PLATFORMS := darwin/arm64 windows/amd64 linux/s390x js/wasm

# The packages that a build configuration can affect. Not among them are the command, the examples and the guides, which
# only use the library, and packages whose tests read text, or explore and model code of their own.
CORE = $$($(GO) list ./... | grep -v -e /cmd/ -e /examples/ -e /docs/ -e /internal/archtest -e /internal/interleave -e /internal/history \
	-e /internal/programs -e /internal/model -e /internal/search -e /internal/chart -e /internal/replay)

# The tests of sim that write reports and tables.
SIMGOLDEN := TestTheSameEverywhere|TestWhatEachStrategyNeedsForTheCorpus|TestLargeReports|TestReportNamesBothLeaders|TestHealthyProgramsAreNotExplained

.DEFAULT_GOAL := help
.PHONY: help all quick style nightly soak release installable ratios report site security compare generate tables files format vet platforms lint build test race invariants switchers toolchain i386 \
	arm64 models interleave programs sim coirtest page pictures fuzz examples bench hot

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

all: ## the steps that CI runs for a change; some take turns, day by day: nightly runs those
	@.ci/run

# Measured figures are not generated here: see report, and measure/services of the command. .ci/release runs this
# target, and fails if a file changes. The CI step installable makes a release with tables alone, because the step test
# compares the golden reports.
generate: tables ## write all that is generated: spec/MAP.md, api, schema.json, golden reports, drawings, counts and tables in documents
	$(GO) test -count=1 -timeout 5m ./docs/guide -run 'TestReports' -update
	$(GO) test -count=1 -timeout 5m ./stream -run 'TestGuideTable' -update
	$(GO) test -count=1 -timeout 20m ./sim -run '$(SIMGOLDEN)' -update
	$(GO) test -count=1 -timeout 20m ./cmd/coir -run 'TestLargeReports' -update
	$(GO) test -count=1 -timeout 1m ./cmd/coir-top -run 'TestTheScreenOfTheGuide' -update

tables: ## the part of generate that takes no schedules
	$(GO) run ./internal/archtest/specmap
	$(GO) run ./internal/archtest/importmap
	cd bench && $(GO) run ./report
	$(GO) run ./internal/archtest/figures
	$(GO) test -count=1 -timeout 5m ./internal/archtest -run 'TestAPIIsRecorded|TestSharedWords' -update
	cd bench && $(GO) run ./scale
	$(GO) test -count=1 -timeout 5m ./verify/export -run 'TestTheGuide' -update
	$(GO) test -count=1 -timeout 5m ./inspect -run 'TestSchemaIsThatOfTheTypes|TestTextOfASnapshot' -update
	$(GO) test -count=1 -timeout 5m ./cmd/coir -run 'TestStrategiesInTheGuide' -update

files: ## fail on binaries and on large files that are not listed
	$(GO) test -count=1 -timeout 1m ./internal/archtest -run 'TestTracked'

security: ## the licences of all modules, and known vulnerabilities where their database can be reached
	.ci/security

format: ## fail on files that gofmt would change, and name them
	@out=$$(gofmt -l $$(git ls-files '*.go' ':!*_go127.go')); if [ -n "$$out" ]; then echo "not formatted; run gofmt -w on:"; echo "$$out"; exit 1; fi

# The rules of the repository that read text, and take seconds.
STYLE := TestAPIIsRecorded|TestCitations|TestPublicDocs|TestLinesFit|TestDocsNameWhatExists|TestREADMEIsShort|TestExamplesAre
STYLE := $(STYLE)|TestErrors|TestFailuresSay|TestFigures|TestGrammar|TestImportMap|TestImportOrder|TestTextNames
STYLE := $(STYLE)|TestTextIs|TestQuotedHeadings|TestReleasesAre|TestTagsAre|TestVariablesAre|TestWordsOfSteps|TestSpec
STYLE := $(STYLE)|TestTracked|TestWeak

style: format ## the rules that read text: format, length of lines, words, names in documents, generated tables; seconds
	$(GO) test -vet=off -timeout 2m ./internal/archtest -run '^($(STYLE))'

# The packages that coir-vet checks. Tests of the library, and examples/stuck, make the reported mistakes on purpose:
# they hold a worker, or do not call a cancel function. The tests of module vet check the corpus of buf.
COIRVET = $$($(GO) list ./docs/... ./examples/... | grep -v /examples/stuck)

vet: ## go vet with the build tags, and coir-vet; lint has the vet of every module, and of the race build
	$(GO) vet -tags coirinvariants,coirinterleave,coirmutants,coirtrampoline ./...
	$(GO) vet -tags purego ./internal/...
	$(GO) build -o .bin/coir-vet ./vet/cmd/coir-vet
	$(GO) vet -vettool=$(CURDIR)/.bin/coir-vet $(COIRVET)

lint: ## golangci-lint, as pinned in tools/go.mod, in all modules
	.ci/lint

build: ## the library on platforms that no test runs on; the tools, and a test with its overlay, for darwin and windows
	@for p in $(PLATFORMS); do \
		echo "build $$p"; \
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) build $(CORE) || exit 1; \
	done
	@$(GO) build -o .bin/coir ./cmd/coir
	@for p in darwin/arm64 windows/amd64; do \
		echo "coir test -c $$p"; \
		(export GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 && $(GO) build -o /dev/null ./cmd/coir && \
			$(GO) build -o /dev/null ./cmd/coir-top && \
			.bin/coir test -c -o .bin/bank.test ./cmd/coir/testdata/bank) || exit 1; \
	done

installable: ## make a release in a copy, and install and use it as a user does, from a module proxy in a directory
	.ci/installable

platforms: ## go vet of the root module, tests and examples included, for every platform that it knows; part of soak
	@for p in $(PLATFORMS) linux/arm linux/riscv64; do \
		echo "vet $$p"; \
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) vet ./... || exit 1; \
	done

# Words in the names of the tests that a step runs again: see "Names inside" in docs/HACKING.md.
SIMRACE := Race|Native|Outside|Own|Goroutine
SIMCPU  := Own
PUREGO  := Fiber|Thread|Context|Guest|Goexit|Panic|Blocking|Nursery|Select

# A machine of CI has 2 processors.
test: ## all tests, those of the examples too; then short ones with 1 and 4 processors
	EXCEPT=bench .ci/each $(GO) test $(FULL) ./...
	$(GO) test $(SHORT) -cpu 1,4 . ./internal/clock ./internal/coro ./internal/park ./internal/sched
	$(GO) test $(SHORT) -cpu 1,4 -run '$(SIMCPU)' ./sim

# Left out are packages without goroutines of their own: archtest, the explorer, the drawings, the code in documents.
# Fibers of a simulation take turns, so the tests of package sim that matter most here are those about races, and those
# with other goroutines; nightly has all of them, and the modules whose dependencies take long to build.
race: ## the short tests under the race detector; of package sim those with certain words in their names: nightly has all
	EXCEPT="bench vet verify site cmd/coir-top" .ci/each sh -c '$(GO) test $(SHORT) -race $$($(GO) list ./... | \
		grep -v -e /internal/archtest -e /internal/interleave -e /internal/chart -e /docs/ -e "/coir/sim$$")'
	$(GO) test $(SHORT) -race -run '$(SIMRACE)' ./sim

invariants: ## the short tests of the packages that wait and switch, with invariants checked; i386 has the others
	$(GO) test $(SHORT) -tags coirinvariants -race ./internal/park ./internal/channel ./internal/sched ./internal/clock

switchers: ## the short tests of what switches on the second switcher; without assembly those about who runs where
	$(GO) test $(SHORT) -tags coirtrampoline . ./internal/coro ./internal/park ./internal/sched
	$(GO) test $(SHORT) -tags purego ./internal/coro ./internal/park ./internal/sched
	$(GO) test $(SHORT) -tags purego -run '$(PUREGO)' .

# These packages use what only the runtime, the compiler or the standard library promise.
BOUND := . ./internal/bubble ./internal/coro ./internal/park ./internal/race ./internal/sched ./internal/stdctx ./internal/xatomic ./netio ./buf/...

toolchain: ## the short tests of what depends on Go itself with the newest Go release, and what it inlines; nightly has the others
	GOTOOLCHAIN=$(TOOLCHAIN) $(GO) test $(SHORT) $(BOUND) ./cmd/coir/internal/overlay
	GOTOOLCHAIN=$(TOOLCHAIN) $(GO) test $(FULL) -run Hot ./internal/archtest

# In the simulator, only the trace of a seed could differ.
i386: ## the short tests as linux/386, which an amd64 machine runs itself, with invariants checked
	GOOS=linux GOARCH=386 CGO_ENABLED=0 $(GO) test $(SHORT) -tags coirinvariants $$(echo "$(CORE)" | grep -v '/sim$$')
	GOOS=linux GOARCH=386 CGO_ENABLED=0 $(GO) test $(SHORT) -run TestTheSameEverywhere ./sim
	GOOS=linux GOARCH=386 CGO_ENABLED=0 $(GO) -C verify test $(SHORT) ./...

arm64: ## the short tests as linux/arm64, under an emulator
	.ci/arm64

models: ## check the Promela models, in the form that ends within 2 minutes
	promela/check.sh short

interleave: ## the real code through the orders of its accesses, and a part of its mutants, another one each day
	$(GO) test $(FULL) -tags coirinterleave,coirinvariants -run Explore . ./internal/park ./internal/clock ./internal/sched
	$(GO) test $(FULL) -tags coirinterleave ./internal/interleave ./internal/xatomic

programs: ## random programs against the public API, and a part of the mutants that they must find, another one each day
	$(GO) test $(FULL) -v -tags coirmutants ./internal/programs ./internal/mutant
	cd remote && $(GO) test $(FULL) -v -tags coirmutants ./internal/mutants

sim: ## the short tests of the simulator; test has the long ones
	$(GO) test $(SHORT) ./sim/...

# These tests are small enough for coir test: they test how goroutines and fibers interact, in the root and the packages
# below it. A large test would be run in only one or two orders. NOTEXPLORED names tests of behaviour outside of all
# bubbles (Here, Follow, and the tests of idle and standby workers), and one that polls for a fifth of a second
# (WorkerStates).
BUDGET      ?= 100ms
NOTEXPLORED := ^Test(Here|Follow|WorkerStates|StandIn.*|IdleWorkersThin|LastSearcher.*|FreshWork.*|WorkersComeOneAtATime)$$

coirtest: ## coir's own tests under coir test, with goroutines and fibers in one schedule
	$(GO) build -o .bin/coir ./cmd/coir
	.bin/coir test -short -budget $(BUDGET) -skip '$(NOTEXPLORED)' ./explore ./internal/bubble ./internal/coro \
		./internal/park ./internal/sched ./internal/wait
	.bin/coir test -short -budget $(BUDGET) -run '^TestMixed' .
	.bin/coir test -strategy dpor -schedules 100000 -run '^TestExploreWaking' ./buf/shm
	cd verify && ../.bin/coir test -schedules 3 -strict ./loopback

page: ## the page of a failure, and that of a running program, in a headless Chromium: keys, search, and how long they take
	COIR_PAGE=1 $(GO) test $(FULL) -p 1 -v -run '^TestThePage' ./internal/chart ./inspect ./examples/stuck

# The other pictures: see docs/guide/chart_test.go.
pictures: ## take the picture of the inspector in README again, in a headless Chromium
	@mkdir -p .bin/pictures
	COIR_PICTURES=$(CURDIR)/.bin/pictures $(GO) test $(FULL) -run '^TestThePage' ./examples/stuck
	cp .bin/pictures/stuck-locks.png docs/guide/inspector.png

fuzz: ## every fuzz target for a moment
	.ci/fuzz

examples: ## build and test the examples, as test does too
	$(GO) build ./examples/...
	$(GO) test $(SHORT) ./examples/...

bench: ## build and test the benchmarks, and list the ratios; measuring is done by hand
	cd bench && $(GO) build ./... && $(GO) test $(SHORT) ./... && $(GO) run ./ratios -list

hot: ## the ratios of the hot paths in a short form, with generous bounds and no new allocation
	cd bench && $(GO) run ./ratios -hot

quick: ## what to run after each change, in minutes: format, vet and short tests of what changed and depends on it, the rules
	@STYLE='$(STYLE)' .ci/quick

nightly: ## all of what CI runs in turns, and what it leaves out; about two hours
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v -tags coirinterleave -run TestMutantsAreFound ./internal/interleave
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v -tags coirmutants -run TestMutants ./internal/programs ./internal/mutant
	cd remote && COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v -tags coirmutants ./internal/mutants
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v -run 'TestTheServices|TestAtomics|TestTheLaterCorpus' ./cmd/coir/acceptance
	COIR_GRAFANA=1 $(GO) -C verify test -count=1 -timeout 10m -run TestTheDashboardFitsGrafana ./export
	$(GO) test $(SHORT) -tags coirtrampoline $(CORE)
	$(GO) test $(SHORT) -tags coirinvariants $(CORE)
	GOTOOLCHAIN=$(TOOLCHAIN) $(GO) test $(SHORT) $(CORE)
	$(GO) test $(SHORT) -race ./sim
	for m in verify cmd/coir-top; do $(GO) -C $$m test $(SHORT) -race ./... || exit 1; done
	$(MAKE) page arm64 i386 models switchers
	FUZZTIME=100000x $(MAKE) fuzz

soak: ## the long forms: full-size cancels, closes, cycles, timers, channels, linearizability, explorations and the models; about five hours
	COIR_SOAK=1 $(GO) test -count=1 -timeout 180m -v .
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v -tags coirinvariants -run TestOneOutcomeOfEachWait .
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v -race -run TestSnapshotsForLong .
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -run TestRandomHistories ./internal/history
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v ./desk
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v -run Misuse ./buf
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v ./buf/shm
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v -run 'TestConstantMemory|TestGroupByManyKeys' ./stream
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v -tags coirmutants ./internal/programs
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v -tags coirinterleave ./internal/interleave
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v ./sim
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v -race -run WaitsUnderOthers ./sim
	$(GO) test -count=1 -timeout 90m -race ./sim
	cd verify && COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v -run 'TestLinearizable' ./...
	cd remote && COIR_SOAK=1 $(GO) test -count=1 -timeout 180m -v . ./ticket
	cd remote/nats && COIR_SOAK=1 $(GO) test -count=1 -timeout 180m -v -run 'TestFaults|TestTickets|TestPayments' . ./examples/payments
	COIR_SOAK=1 $(GO) test -count=1 -timeout 90m -v ./cmd/coir ./cmd/coir/acceptance
	$(GO) test -count=1 -timeout 90m -tags purego . ./internal/...
	$(GO) test -count=1 -timeout 90m -short -tags coirinvariants -race . ./internal/...
	COIR_SOAK=1 $(GO) test -count=1 -timeout 180m -v -tags coirinterleave,coirinvariants -run Explore . ./internal/park ./internal/clock ./internal/sched
	promela/check.sh long
	$(MAKE) platforms

release: ## check the tree, and tag it: make release VERSION=v0.1.0
	.ci/release '$(VERSION)'

ratios: ## every comparison, with its bound
	cd bench && $(GO) run ./ratios

# ROUNDS=0 lets each comparison use its own number of rounds; FLAGS may be -cpu. Idle series are measured once, for 5 s.
ROUNDS ?= 0
REPORT := ../.bin/report
report: ## measure every comparison and growth series, and write docs/benchmarks.md: on a quiet machine, up to 40 minutes
	@mkdir -p .bin/report
	cd bench && $(GO) run ./ratios -json -rounds $(ROUNDS) $(FLAGS) > $(REPORT)/ratios.jsonl
	cd bench && $(GO) run ./growth -json -rounds $(if $(filter 0,$(ROUNDS)),15,$(ROUNDS)) $(FLAGS) > $(REPORT)/growth.jsonl
	cd bench && $(GO) run ./growth -json -rounds 1 -round 5s -only idle-fibers,idle-conns > $(REPORT)/idle.jsonl
	cd bench && $(GO) run ./report -measured $(REPORT)/ratios.jsonl,$(REPORT)/growth.jsonl,$(REPORT)/idle.jsonl
	$(GO) run ./internal/archtest/figures

site: ## write the documents as pages into .bin/site
	cd site && $(GO) run . -o ../.bin/site

# To measure a change of speed, run processes of both builds alternately. FLAGS may be -markdown or -runs 9.
compare: ## the ratios of a commit and of the working tree, by turns: make compare BASE=commit NAMES=a,b,c
	cd bench && $(GO) run ./compare -base '$(BASE)' -names '$(NAMES)' $(FLAGS)
