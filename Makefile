# Everything a developer or newcomer runs. `make` alone lists the targets.
SHELL := /bin/bash
GO ?= go

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: postgres hook-tools build ## Set up, run the whole path once with real parts, and stop everything
	@deploy/demo.sh

.PHONY: newcomer
newcomer: postgres hook-tools ## Walk the README as it stands, in a fresh clone, and compare what it shows
	$(GO) run ./deploy/newcomer

.PHONY: test
test: postgres hook-tools ## Run all tests; they start a private Postgres and stop it again
	$(GO) test -timeout 20m ./...

.PHONY: test-browser
test-browser: postgres chromium ## Drive the console in a real browser; pictures go to screenshots/
	@mkdir -p screenshots
	WEIR_SCREENSHOTS=$(CURDIR)/screenshots $(GO) test -tags browser -count 1 -timeout 5m -run Browser ./cmd/weir/console

.PHONY: race
race: postgres hook-tools ## Run the tests of one process under the race detector
	$(GO) test -race -timeout 30m $$($(GO) list ./... | grep -vx weir/cmd/weir) # that one drives a binary built without it

.PHONY: test-deploy
test-deploy: postgres hook-tools ## Test what else is in deploy/: charts, Kueue, dashboard, compose file (minutes)
	cd deploy/kubernetes && $(GO) test -timeout 5m ./...
	cd deploy/kueue && $(GO) test -timeout 5m ./...
	cd deploy/operations && $(GO) test -timeout 5m ./...

.PHONY: build
build: ## Build the binaries into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/weir ./cmd/weir
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/receiver ./deploy/receiver

.PHONY: lint
lint: ## Check formatting, vet, staticcheck, and that go.mod is tidy
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt-ed:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags browser ./cmd/weir/console
	$(GO) tool staticcheck ./...
	$(GO) mod tidy -diff

.PHONY: fuzz
fuzz: ## Fuzz every target for 20 seconds each
	@set -e -o pipefail; for file in $$(git grep -l '^func Fuzz' -- '*_test.go'); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' $$file); do \
			echo "== $$target in ./$$(dirname $$file)"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime 20s ./$$(dirname $$file) | tee /dev/stderr | grep 'fuzz: elapsed' >/dev/null; \
		done; done

.PHONY: bench
bench: ## Compare with peers in one run; writes the figures to docs/performance.md
	cd bench && $(GO) run . && $(GO) run ./identity

.PHONY: bench-record
bench-record: postgres ## Measure the record: a million exported, the cost of the log
	$(GO) test ./cmd/weir -run '^$$' -bench 'Export$$' -benchtime 1000000x -timeout 120m
	$(GO) test ./cmd/weir/api -run '^$$' -bench Sequencing -benchtime 1x -timeout 20m

.PHONY: packs
packs: build ## Ratify the shipped packs again after a change
	@for p in safety_floor $$(cd screening/packs && ls *.yaml | grep -v cases | sed 's/\.yaml//' | grep -v safety_floor); do \
		bin/weir pack ratify screening/packs/$$p.yaml && $(MAKE) -s build || exit 1; done

.PHONY: vocabulary
vocabulary: build ## Write docs/vocabulary.md from the shipped packs
	@bin/weir pack list --output markdown >docs/vocabulary.md.new && mv docs/vocabulary.md.new docs/vocabulary.md

# The tests and the demo need the Postgres server programs, nothing more: no
# running server, no database. They are installed only when they are missing.
# The browser tests need Debian's or another Chromium, found by name or WEIR_CHROMIUM.
.PHONY: chromium
chromium:
	@deploy/chromium.sh

.PHONY: postgres
postgres:
	@deploy/postgres.sh

# The tests run the hooks of orchestrators and the receiver in Python; certificates are
# made with openssl, and the demo asks with curl.
.PHONY: hook-tools
hook-tools:
	@deploy/hook-tools.sh
