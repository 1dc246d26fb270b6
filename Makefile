# Everything a user or a developer runs. `make help` lists it.
.DEFAULT_GOAL := help
ifeq ($(MAKE_VERSION),3.81)
$(error GNU make 3.82 or later is needed, which macOS does not have: brew install make, and gmake)
endif
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

modules := ./ e2e/ $(dir $(wildcard extensions/*/go.mod))
tools := $(CURDIR)/.cache/bin
golangci_version := v2.15.0
golangci := $(tools)/golangci-lint-$(golangci_version)/golangci-lint
actionlint_version := v1.7.12
actionlint := $(tools)/actionlint-$(actionlint_version)/actionlint
vale_version := v3.22.0
vale := $(tools)/vale-$(vale_version)/vale
govulncheck_version := v1.8.0

.PHONY: help build dist demo report-assets influx study dashboards test test-quick test-full bench fresh lint systems vulncheck generate methodology fuzz clean

help: ## what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-16s %s\n", $$1, $$2 }'

build: ## ./k6, with every broker in it
	go build -o k6 ./cmd/k6

dist: ## dist/: archives for Linux, macOS and Windows, of VERSION or what git describes
	scripts/dist

demo: build ## producers and consumers on the embedded broker, about 15 s
	./k6 run scenarios/quickstart.js

influx: build ## a run into InfluxDB, which it starts
	scripts/influx

study: build ## a published benchmark again: STUDY=kreps-2014 and SCALE=0.01; it starts the brokers that it needs
	scripts/study $(STUDY)

dashboards: ## grafana/dashboards from the code in grafana/src
	cd grafana && npm ci --no-audit --no-fund && npm run generate

test: ## unit tests, and every broker that runs here, which it installs and starts
	scripts/test

test-quick: ## unit tests and the embedded broker; no server
	scripts/test --quick

test-full: ## a part of the long tests: PART=core, drivers, scenarios, faults, truth, processes, studies, release or kubernetes
	scripts/test --full '$(PART)'

bench: build ## speed and CPU per message against hand-written loops, as a table, kept in bench.txt
	scripts/bench

fresh: ## demo and test on a bare Debian in a folder, as root
	scripts/fresh

lint: $(golangci) $(actionlint) $(vale) ## the linter, which also holds the walls between the packages; tidy modules; workflows; documents; shell scripts, where shellcheck is installed
	GOWORK=$$(scripts/workspace) $(golangci) run --allow-serial-runners ./... $(patsubst %,./%...,$(filter extensions/%,$(modules)))
	cd e2e && $(golangci) run --allow-serial-runners --config ../.golangci.yml ./...
	for m in $(modules); do (cd $$m && go mod tidy -diff); done
	$(actionlint)
	$(vale) --output line README.md CONTRIBUTING.md SECURITY.md docs types/README.md scripts/brokers/README.md
	if command -v shellcheck >/dev/null; then shellcheck -x $$(git ls-files scripts .ci e2e/kubernetes | xargs grep -lE '^#!.*bash$$') scripts/brokers/*.sh scripts/brokers/lib/*.sh; fi

# What the release builds as well is taken from the same cache.
systems: export CGO_ENABLED := 0
systems: ## go vet for macOS and Windows, tests included
	for os in darwin windows; do for m in $(filter-out e2e/,$(modules)); do (cd $$m && GOOS=$$os go vet -trimpath ./...); done; done

$(golangci):
	GOBIN=$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(golangci_version)

$(actionlint):
	GOBIN=$(@D) go install github.com/rhysd/actionlint/cmd/actionlint@$(actionlint_version)

$(vale):
	GOBIN=$(@D) go install github.com/vale-cli/vale/v3/cmd/vale@$(vale_version)

vulncheck: ## what Go's vulnerability database, in the network, has on k6 with every broker in it
	go run golang.org/x/vuln/cmd/govulncheck@$(govulncheck_version) ./...

generate: ## the tables in the documents, and the types for scripts, that come from the code
	cd e2e && go run ./docgen ..

methodology: build ## the tables of docs/evidence/lies.md, from real runs on a server of its own
	scripts/methodology

report-assets: ## the script and style of the report pages, built from extensions/xk6-broker/internal/report/web; needs node
	cd extensions/xk6-broker/internal/report/web && npm ci --ignore-scripts && npm run build

fuzz: ## every fuzz test, 20 s each
	for m in $(modules); do (cd $$m && $(CURDIR)/scripts/fuzz 20s); done

clean: ## what was built and written; .cache keeps the brokers
	rm -rf k6 dist results .cache/bin bench.txt
