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
RESULTS ?= results
MEASURE := .venv/bin/python -m infra.benchmark_job.dispatch
# With `=`: a value that begins with a dash is still a value.
ON_STACK = $(if $(STACK),--stack="$(STACK)") --results="$(RESULTS)"

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it, without a GPU or a cloud account
.PHONY: demo demo-down
demo: ## Pulumi deploys prefill/decode vLLM on Ray on this machine; AIPerf measures; ends with a report
	@$(BOOTSTRAP) -m tools.demo up

demo-down: ## Remove what `make demo` deployed (reports stay)
	@$(BOOTSTRAP) -m tools.demo down

.PHONY: rehearse rehearse-shell
rehearse: tools ## Deploy STACK=pd-2p1d for real on a simulated Kubernetes cluster, show where the pods land, take it down
	@$(TOOLCHAIN) ensure kubernetes-provider cluster >&2
	.venv/bin/python -m tools.rehearsal up "$(or $(STACK),pd-2p1d)"

rehearse-shell: tools ## A shell beside a simulated Kubernetes cluster: pulumi, kubectl, make (GPU_NODES=4)
	@$(TOOLCHAIN) ensure kubernetes-provider cluster >&2
	.venv/bin/python -m tools.rehearsal shell $(if $(GPU_NODES),--gpu-nodes="$(GPU_NODES)")

.PHONY: simulated-server
simulated-server: tools ## An OpenAI server of modelled latencies, no model in it; prints a target to measure (ARGS=--help)
	@.venv/bin/python -m tools.simulated_server $(ARGS)

##@ Deploy and measure
.PHONY: stacks benchmark campaign compare results figures scenarios
stacks: tools ## Register every shipped stack in the current Pulumi backend (a local one if none is chosen)
	@$(BOOTSTRAP) -m tools.stacks

benchmark: tools ## Measure the selected stack (STACK=, RESUME=1 goes on, SCENARIO=, SCENARIOS=file, RATES=)
	@$(ENTER)
	$(MEASURE) benchmark $(ON_STACK) $(if $(filter-out 0,$(RESUME)),--resume) $(if $(SCENARIO),--scenario="$(SCENARIO)") \
		$(if $(SCENARIOS),--scenarios="$(SCENARIOS)") $(if $(RATES),--rates="$(RATES)")

campaign: tools ## Up, measure, destroy STACKS="a b" by turns, REPEATS=2 times (RESUME=1, SCENARIO=, RATES=, UNEQUAL_GPUS=1)
	@$(ENTER)
	.venv/bin/python -m infra.campaign --results="$(RESULTS)" $(if $(REPEATS),--repeats="$(REPEATS)") \
		$(if $(SCENARIO),--scenario="$(SCENARIO)") $(if $(RATES),--rates="$(RATES)") \
		$(if $(filter-out 0,$(RESUME)),--resume) $(if $(filter-out 0,$(UNEQUAL_GPUS)),--unequal-gpus) -- $(STACKS)

compare: tools ## Hold CANDIDATE= against BASE= (stacks or runs): rates under each SLO, latencies, cost (ACCEPT=, PRICE=, LOAD=)
	@.venv/bin/python -m benchmarks compare --results="$(RESULTS)" $(if $(OUT),--out="$(OUT)") \
		$(foreach id,$(ACCEPT),--accept=$(id)) $(if $(PRICE),--price="$(PRICE)") $(if $(LOAD),--load="$(LOAD)") \
		-- "$(BASE)" "$(CANDIDATE)"

results: tools ## Copy the runs of a stack on Kubernetes here; follow the one that is being measured (STACK=)
	@$(ENTER)
	$(MEASURE) results $(ON_STACK)

figures: tools ## Draw the reference post's figures again from the runs in RESULTS=results, into OUT=results/figures
	@.venv/bin/python -m benchmarks figures --results="$(RESULTS)" --out="$(or $(OUT),$(RESULTS)/figures)"

scenarios: tools ## List the benchmark scenarios (SCENARIOS=file those of another file)
	@.venv/bin/python -m benchmarks scenarios $(if $(SCENARIOS),--scenarios="$(SCENARIOS)")

##@ Images
.PHONY: images image-digests
images: tools ## Build TARGETS="rocm benchmark" with docker buildx, every version from versions.toml (PUSH=1 pushes)
	@docker buildx version > /dev/null 2>&1 || { \
		echo "error: docker buildx is missing; install docker's buildx plugin (docs/howto/images.md)" >&2; exit 1; }
	arguments=$$(mktemp --suffix .json)
	trap 'rm -f "$$arguments"' EXIT
	.venv/bin/python -m tools.image_builder.arguments print > "$$arguments"
	docker buildx bake --file docker/docker-bake.hcl --file "$$arguments" $(if $(filter-out 0,$(PUSH)),--push,--load) \
		$(or $(TARGETS),rocm benchmark)

image-digests: tools ## Ask the registries for the digests of the base images, and write them into versions.toml
	@.venv/bin/python -m tools.image_builder.arguments digests --write

##@ Toolchain
.PHONY: toolchain toolchain-base toolchain-cluster toolchain-benchmark tools doctor env lock prune
toolchain: toolchain-base ## Find or build Pulumi and its Kubernetes provider, the Python environments, the system library
	@$(TOOLCHAIN) ensure kubernetes-provider >&2

toolchain-base:
	@$(TOOLCHAIN) ensure pulumi tools tcmalloc runtime-cpu benchmark ucx >&2

toolchain-cluster: ## Build a Kubernetes control plane that runs as processes, for tests and rehearsals
	@$(TOOLCHAIN) ensure cluster >&2

tools: ## Only what deploying needs: Pulumi and .venv
	@$(TOOLCHAIN) ensure tools pulumi >&2

toolchain-benchmark: tools
	@$(TOOLCHAIN) ensure benchmark >&2

doctor: ## Say what was found where, what is missing, and the fix
	@$(TOOLCHAIN) doctor

env: ## Shell lines that put the toolchain on PATH: eval "$(make -s env)"
	@$(TOOLCHAIN) env

prune: ## Delete environments and programs from the cache that this checkout does not use
	@$(TOOLCHAIN) prune

lock: tools ## Resolve requirements/*.txt again from versions.toml
	@.venv/bin/python -m tools.lock

##@ Written files that are committed
.PHONY: schema study screenshots
schema: tools ## Write the JSON schema of a run's summary.json to docs/reference
	@.venv/bin/python -m benchmarks schema > docs/reference/summary.schema.json

study: tools ## Examine the search and the comparison on simulated services: page and data in docs/explanation (SEEDS=20)
	@.venv/bin/python -m tools.study $(if $(SEEDS),--seeds="$(SEEDS)")

screenshots: tools ## Photograph the report and the figures, of simulated runs, for docs/images
	@$(TOOLCHAIN) ensure chromium >&2
	.venv/bin/python -m tools.pictures.screenshots

##@ Test
.PHONY: test compile-meanwhile lint types test-first test-fast test-unit test-engine test-simulated \
	test-cluster test-deployed test-local test-images
test: toolchain-base compile-meanwhile lint test-first test-deployed ## Everything that can be tested here

# Engines that load, and loads that run, leave a core free for much of the time. Deploying to a cluster needs both.
test-first: toolchain-base toolchain-benchmark
	@.venv/bin/python -m tools.side_by_side test-local test-fast

test-fast: types test-unit test-engine test-simulated

# What the later tests need and is not there yet; they wait for it. It ends when this make does (its process: PPID).
compile-meanwhile:
	@$(TOOLCHAIN) meanwhile $$PPID kubernetes-provider cluster >&2

lint: tools ## ruff, hadolint, and the walls between infra, serving and benchmarks
	@.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/hadolint docker/*.Dockerfile
	.venv/bin/lint-imports

types: tools ## pyright
	@.venv/bin/pyright

test-unit: toolchain-benchmark ## No cluster, no engine
	@$(TOOLCHAIN) ensure ucx chromium >&2
	@PD_MI325X_AIPERF=$$($(TOOLCHAIN) path benchmark)/bin/aiperf .venv/bin/python -m pytest tests/unit -n 2 --dist loadfile --no-loadscope-reorder

# tests/runtime is one long file: it comes first, so that the other process has the rest meanwhile.
test-engine: toolchain-base ## The real Pulumi engine, from the shell; what Ray and vLLM make of every rendered config
	@$(ENTER)
	.venv/bin/python -m pytest tests/runtime tests/engine -n 3 --dist loadfile

test-cluster: test-simulated test-deployed ## A real Kubernetes control plane with simulated GPU nodes, deployed to by Pulumi

# The part of the cluster tier that one core can do beside the local tier: the cluster itself, and validation.
SIMULATED := $(wildcard tests/cluster/test_simulated_*.py) tests/cluster/test_strict_validation.py
test-simulated: toolchain toolchain-cluster
	@$(ENTER)
	.venv/bin/python -m pytest $(SIMULATED)

# This tier and the engine's wait a good part of the time: more processes than cores. Not reordered, as files of few
# tests are the long ones here, and would come last. One long file would, by its name: it comes first.
LONG := tests/cluster/test_rdma_gate.py
test-deployed: toolchain toolchain-cluster
	@$(ENTER)
	.venv/bin/python -m pytest -v $(LONG) $(filter-out $(LONG) $(SIMULATED),$(wildcard tests/cluster/test_*.py)) \
		-n 3 --dist loadfile --no-loadscope-reorder

test-images: toolchain-base ## Build the images with BuildKit, on stand-ins for what no registry gives here (root, 30 GB of disk)
	@$(TOOLCHAIN) ensure image-builders >&2
	.venv/bin/python -m pytest -v tests/images

test-local: toolchain-base ## Real Ray Serve, vLLM and NIXL on this machine's CPU, deployed by Pulumi, measured by AIPerf
	@$(ENTER)
	export PD_MI325X_AIPERF=$$($(TOOLCHAIN) path benchmark)/bin/aiperf
	.venv/bin/python -m pytest -v tests/local
