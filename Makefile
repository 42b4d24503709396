# The front door. `make` alone lists what there is; CMakeLists.txt is the build itself.
#
#   DEPS=true          skip the search for missing packages
#   TYPE=RelWithDebInfo  another build type;  JOBS=n  how many at once
#   LM='--shots 4'     other options for the studies of language models in `make run`
#   PREFIX, DESTDIR    where `make install` puts things

BUILD   ?= build
TYPE    ?= Release
PREFIX  ?= /usr/local
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
DEPS    ?= tools/deps
FUZZ ?= long
FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 600
RIGOUR ?= 10000000
MODELS ?= 4000
MUTANTS ?= 1000
# What `make run` asks of the default language model: as much as fits into a few minutes.
LM ?= --shots 0,4 --queries 24 --demos shared --exact

# Only errors are shown, and they go to standard error.
configure = cmake -S . -DCMAKE_INSTALL_PREFIX="$(PREFIX)"
# The inner make has its own idea of -j and must not inherit our variables.
compile   = env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL cmake --build
run_tests = JOBS=$(JOBS) tools/tests

export CGAM_BUILD = $(abspath $(BUILD))

.PHONY: help deps deps_test build demo run test check san nightly nightly_slow nightly_asan fuzz bench docs python deb image wasm install soak cross coverage mutate reliability dist clean
.NOTPARALLEL:

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

deps: ## install what is missing to build and run (Debian; says what it does)
	@$(DEPS)

build: deps ## the program build/cgam, the libraries build/lib, the man pages build/man
	@[ "$(DEPS)" != tools/deps ] || { tools/llama --quiet && tools/uplot --quiet; }
	@$(configure) -B $(BUILD) -DCMAKE_BUILD_TYPE=$(TYPE) >/dev/null
	@[ -x $(BUILD)/cgam ] || echo "building cgam in $(BUILD)/ (about a minute)"
	@$(compile) $(BUILD) -j $(JOBS) --target product

run: build ## every study and the report, language models included: report/index.html
	@$(BUILD)/cgam report --out report
	@$(BUILD)/cgam lm get >/dev/null || exit 0; \
	echo "language models: two short studies, about two minutes; stopped, they resume"; \
	for set in sentiment facts; do \
	    $(BUILD)/cgam lm study --dataset $$set $(LM) --report report >/dev/null || \
	        { code=$$?; [ $$code != 2 ] || exit 0; exit $$code; }; \
	done; \
	echo "language models: in report/index.html too"

deps_test:
	@[ "$(DEPS)" != tools/deps ] || tools/deps test

demo: build ## one query under several contexts, and a picture of its energy landscape: report/demo/landscape.png
	@$(BUILD)/cgam demo
	@$(BUILD)/cgam landscape --bank demo: --query 'rows:7*0.5+23*0.5' --context rows:7 --lambda 0.8 --beta 8 --out report/demo

test: deps_test build ## the tests of every change, some minutes; the exit status is the verdict
	@$(compile) $(BUILD) -j $(JOBS)
	@$(run_tests) $(BUILD) -LE nightly

check: build ## format, layers, headers, warnings of two compilers, clang-tidy, links and names in documents
	@[ "$(DEPS)" != tools/deps ] || tools/deps check
	@tools/check

configure_asan = $(configure) -B $(BUILD)/asan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCGAM_SANITIZE=address >/dev/null
san: deps_test ## tests of base, num, io, net and memory under ASan and UBSan, the threaded ones under TSan
	@$(configure_asan)
	@$(compile) $(BUILD)/asan -j $(JOBS) --target core
	@CGAM_ROW="Tests under ASan and UBSan" $(run_tests) $(BUILD)/asan -L core -LE nightly --no-tests=error
	@$(configure) -B $(BUILD)/tsan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCGAM_SANITIZE=thread >/dev/null
	@$(compile) $(BUILD)/tsan -j $(JOBS) --target threaded
	@CGAM_ROW="Threaded tests under TSan" $(run_tests) $(BUILD)/tsan -L threads -LE nightly --no-tests=error

nightly: deps_test build ## everything else, some hours: slow tests, all tests under ASan and UBSan, 64-bit Arm, coverage, mutants
	@status=0; for part in slow asan; do $(MAKE) --no-print-directory nightly_$$part || status=1; done; \
	for part in cross coverage mutate; do $(MAKE) --no-print-directory $$part || status=1; done; exit $$status

nightly_slow:
	@[ "$(DEPS)" != tools/deps ] || { tools/deps check && tools/deps deb; }
	@$(compile) $(BUILD) -j $(JOBS) --target all nightly
	@$(run_tests) $(BUILD) -L nightly --no-tests=error

nightly_asan:
	@$(configure_asan)
	@$(compile) $(BUILD)/asan -j $(JOBS) --target all nightly
	@CGAM_ROW="Tests under ASan and UBSan" $(run_tests) $(BUILD)/asan
	@CGAM=$(CGAM_BUILD)/asan/cgam CGAM_BUILD=$(CGAM_BUILD)/asan CGAM_SANITIZE=address CGAM_SRC=$(CURDIR) /usr/bin/python3 -B tests/serve/long_run.py 50

fuzz: ## libFuzzer on every reader, FUZZ_SECONDS=60 each; FUZZ=fast for numbers of inputs (tools/fuzz)
	@[ "$(DEPS)" != tools/deps ] || tools/deps check
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tools/fuzz $(FUZZ)

bench: build ## every claim about speed, as ratios
	@[ "$(DEPS)" != tools/deps ] || tools/deps bench || echo "make bench: without some peers" >&2
	@$(compile) $(BUILD) -j $(JOBS) --target bench_programs
	@set -e; for name in $(basename $(wildcard bench/bench_*.c)); do $(BUILD)/$$name; done
	@CGAM=$(CGAM_BUILD)/cgam CGAM_SRC=$(CURDIR) tests/system/explorer.sh first_load || [ $$? = 77 ]
	@bench/compare $(BUILD)/cgam
	@bench/peer_gradient.py $(BUILD) || [ $$? = 77 ]
	@[ ! -x $(BUILD)/cgam-mpi ] || bench/ranks.py $(BUILD)
	@python=$$(sed -n 's/^CGAM_PYTHON:FILEPATH=//p' $(BUILD)/CMakeCache.txt); [ -z "$$python" ] || \
	{ failed=0; $$python bench/python.py $(BUILD) || failed=1; $$python bench/whole $(BUILD) || failed=1; \
	  $$python bench/neighbours $(BUILD) || failed=1; \
	  $$python bench/verbs $(BUILD) || failed=1; exit $$failed; }

python: ## a wheel of the Python package in build/python/dist, for any CPython from 3.11 on, what it links, and an SBOM
	@[ "$(DEPS)" != tools/deps ] || tools/deps python
	@$(MAKE) --no-print-directory build
	@$(compile) $(BUILD) -j $(JOBS) --target wheel
	@tools/wheel $(BUILD)/python/dist/*.whl
	@! command -v dpkg-query >/dev/null || \
	    SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || date +%s)} tools/sbom $(BUILD) python/cgam/_core.abi3.so >$(BUILD)/python/dist/cgam.spdx.json
	@ls $(BUILD)/python/dist/*

deb: ## Debian packages in build/deb: libcgam0, libcgam-dev, cgam, python3-cgam; judged by lintian
	@[ "$(DEPS)" != tools/deps ] || { tools/deps deb && tools/llama --quiet && tools/uplot --quiet; }
	@JOBS=$(JOBS) tools/deb $(BUILD)

image: ## a container image cgam:VERSION of the Debian packages, by podman or docker; it runs without network
	@tools/image --engine >/dev/null
	@$(MAKE) --no-print-directory deb >/dev/null
	@tools/image $(BUILD)

wasm: ## build/cgam.html: a recall in the browser without a server, libcgam as WebAssembly (installs emscripten)
	@[ "$(DEPS)" != tools/deps ] || tools/deps wasm
	@JOBS=$(JOBS) tools/wasm $(BUILD)
	@ls $(BUILD)/cgam.html

docs: build ## the man pages, and a check that no link in the documents is broken
	@tools/links
	@ls $(BUILD)/man/*.1

install: build ## under PREFIX=/usr/local, staged in DESTDIR when given
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)"

logged = CGAM_SRC=$(CURDIR) CGAM_RELIABILITY=$(CGAM_BUILD)/reliability/$(1).jsonl
soak: deps_test build ## every call to the system failing in turn, 1000 kills, 5000 random command lines; tests under ASan and UBSan again and again, then fuzzing, SOAK_SECONDS=600 each; RIGOUR=10000000 recalls judged (tools/rigour), every bound broken once, every set of instructions, 100,000 requests to the server, MODELS=4000 damaged models
	@$(compile) $(BUILD) -j $(JOBS) --target rigour_campaign
	@tools/rigour $(BUILD) $(RIGOUR) $(JOBS)
	@tests/rigour/broken --build $(BUILD)
	@$(compile) $(BUILD) -j $(JOBS)
	@CGAM=$(CGAM_BUILD)/cgam CGAM_SRC=$(CURDIR) CGAM_KERNELS=all bash tests/system/kernels.sh
	@mkdir -p $(BUILD)/reliability
	@CGAM=$(CGAM_BUILD)/cgam $(call logged,faults) tests/system/faults.sh all
	@[ ! -x $(BUILD)/cgam-mpi ] || CGAM=$(CGAM_BUILD)/cgam $(call logged,ranks) /usr/bin/python3 -B tests/rank/test_faults.py all
	@CGAM=$(CGAM_BUILD)/cgam $(call logged,crash) tests/system/crash.sh all
	@CGAM=$(CGAM_BUILD)/cgam $(call logged,crowd) CGAM_CROWD=100000 /usr/bin/python3 -B tests/serve/test_crowd.py
	@CGAM=$(CGAM_BUILD)/cgam $(call logged,long) /usr/bin/python3 -B tests/serve/long_run.py 1000
	@CGAM=$(CGAM_BUILD)/cgam $(call logged,models) /usr/bin/python3 -B tests/system/hostile_models.py $(MODELS) $$(date +%s)
	@$(configure_asan)
	@$(compile) $(BUILD)/asan -j $(JOBS) --target all nightly
	@CGAM=$(CGAM_BUILD)/asan/cgam CGAM_SANITIZE=address $(call logged,options) tests/system/options.sh 5000
	@tools/soak $(BUILD)/asan $(SOAK_SECONDS)
	@[ "$(DEPS)" != tools/deps ] || tools/deps check
	@FUZZ_SECONDS=$(SOAK_SECONDS) tools/fuzz long

cross: ## library, program and numerical tests for 64-bit Arm, run by qemu-user; machines that are rejected
	@DEPS="$(DEPS)" JOBS=$(JOBS) tools/cross $(BUILD)

coverage: ## which branches the tests take, folder by folder: build/coverage/html/index.html, and a table for make reliability
	@[ "$(DEPS)" != tools/deps ] || tools/deps coverage
	@$(configure) -B $(BUILD)/coverage -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCGAM_SANITIZE=coverage \
	    -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ >/dev/null
	@$(compile) $(BUILD)/coverage -j $(JOBS) --target all nightly
	@rm -rf $(BUILD)/coverage/raw
	@LLVM_PROFILE_FILE=$(CGAM_BUILD)/coverage/raw/%c%m.profraw $(run_tests) $(BUILD)/coverage || \
	    echo "make coverage: make test judges; what the tests that failed would have taken is missing" >&2
	@CGAM_RELIABILITY=$(CGAM_BUILD)/reliability/coverage.md tools/coverage $(BUILD)/coverage

mutate: deps_test build ## would the tests notice? One operator, constant or sign changed at a time; MUTANTS=1000
	@$(compile) $(BUILD) -j $(JOBS) --target all nightly
	@tools/mutate $(BUILD) --count $(MUTANTS)

reliability: ## the tables of docs/reliability.md and SECURITY.md from the campaign's logs, build/reliability
	@tools/reliability $(BUILD)/reliability

dist: build ## the release in build/dist: archive of the last commit, what is linked with licences (SPDX), SHA256SUMS
	@tools/dist $(BUILD) $(BUILD)/dist
	@cat $(BUILD)/dist/SHA256SUMS

clean: ## remove everything that was built
	@rm -rf $(BUILD) report
