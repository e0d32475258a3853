# Every target is one visible command. `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.NOTPARALLEL:

# The toolchain script needs a Python with tomllib; it finds or asks for the 3.12 that the project itself runs on.
BOOTSTRAP := $(shell for p in python3 python3.12 python3.13 python3.11; do \
	$$p -c 'import tomllib' 2>/dev/null && echo $$p && break; done)
ifeq ($(BOOTSTRAP),)
$(error Python 3.11 or later is needed and none was found on PATH; install Python 3.12)
endif
TOOLCHAIN := $(BOOTSTRAP) -m tools.toolchain
ENTER := eval "$$($(TOOLCHAIN) env)"
BENCHMARKS = PD_MI325X_AIPERF=$$($(TOOLCHAIN) path benchmark)/bin/aiperf .venv/bin/python -m benchmarks
RESULTS ?= results

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it, without a GPU or a cloud account
.PHONY: demo demo-down
demo: ## Pulumi deploys prefill/decode vLLM on Ray on this machine; AIPerf measures; ends with a report
	@$(BOOTSTRAP) -m tools.demo up

demo-down: ## Remove what `make demo` deployed (reports stay)
	@$(BOOTSTRAP) -m tools.demo down

##@ Deploy and measure
.PHONY: stacks benchmark scenarios
stacks: tools ## Register every shipped stack in the current Pulumi backend (a local one if none is chosen)
	@$(BOOTSTRAP) -m tools.stacks

benchmark: toolchain-benchmark ## Measure the selected stack (STACK=name another, RESUME=1 goes on, SCENARIO=, RATES=)
	@$(ENTER)
	target=$$(pulumi stack output benchmark --json $(if $(STACK),--stack $(STACK))) || \
		{ echo "error: no deployed stack to measure; run pulumi up (or name one with STACK=)" >&2; exit 1; }
	$(BENCHMARKS) run - --results "$(RESULTS)" $(if $(filter-out 0,$(RESUME)),--resume) $(if $(SCENARIO),--scenario "$(SCENARIO)") \
		$(if $(RATES),--rates "$(RATES)") <<<"$$target"

scenarios: tools ## List the benchmark scenarios
	@.venv/bin/python -m benchmarks scenarios

##@ Toolchain
.PHONY: toolchain tools toolchain-benchmark doctor env lock
toolchain: ## Find or build Pulumi, the Python environments and the system library that are needed
	@$(TOOLCHAIN) ensure pulumi tools tcmalloc runtime-cpu benchmark >&2

tools: ## Only what deploying needs: Pulumi and .venv
	@$(TOOLCHAIN) ensure tools pulumi >&2

toolchain-benchmark: tools
	@$(TOOLCHAIN) ensure benchmark >&2

doctor: ## Say what was found where, what is missing, and the fix
	@$(TOOLCHAIN) doctor

env: ## Shell lines that put the toolchain on PATH: eval "$(make -s env)"
	@$(TOOLCHAIN) env

lock: tools ## Resolve requirements/*.txt again from versions.toml
	@.venv/bin/python -m tools.lock

##@ Test
.PHONY: test lint types test-unit test-engine test-local
test: toolchain lint types test-unit test-engine test-local ## Everything that can be tested here

lint: tools ## ruff, and the walls between infra, serving and benchmarks
	@.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/lint-imports

types: tools ## pyright
	@.venv/bin/pyright

test-unit: toolchain-benchmark ## No cluster, no engine
	@PD_MI325X_AIPERF=$$($(TOOLCHAIN) path benchmark)/bin/aiperf .venv/bin/python -m pytest tests/unit

test-engine: toolchain ## The real Pulumi engine and provider, from the shell
	@$(ENTER)
	.venv/bin/python -m pytest tests/engine

test-local: toolchain ## Real Ray Serve, vLLM and NIXL on this machine's CPU, deployed by Pulumi, measured by AIPerf
	@$(ENTER)
	export PD_MI325X_AIPERF=$$($(TOOLCHAIN) path benchmark)/bin/aiperf
	.venv/bin/python -m pytest tests/local
