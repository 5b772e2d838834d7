# Each target sets up what it needs (scripts/setup.sh), and does nothing that is already done.
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
PROPERTY_SEEDS ?= 5
CONFIGURE = cmake --log-level=WARNING --preset
BUILD = cmake --build $(1) --parallel $(JOBS)
CTEST = ctest --test-dir $(1) --output-on-failure --parallel $(JOBS)

DEMO_JOB = --model llama-13b --cluster a100-80gb --gpus 64 --global-batch 2048 --seq-len 2048 --engine aleph-scaling

# Neither libtorch nor oneTBB is compiled for it: what runs on their threads would be reported without reason.
TSAN_TESTS = base trainer_comm trainer_pipeline
TSAN_UNSEEN = Gloo|Watch
space := $() $()

.PHONY: all planner demo test test-asan test-tsan soak properties bench closed-loop closed-loop-slice fuzz format lint clean help
.PHONY: setup-build setup-torch setup-huggingface setup-frameworks setup-demo setup-browser setup-lint setup-fuzz
.DEFAULT_GOAL := all

all: build/build.ninja build/demo/king-james.txt ## build/layline and build/layline-train, and the examples' text
	@$(call BUILD,build) --target programs

planner: build-planner/build.ninja ## build/layline alone: everything but training, without libtorch
	@$(call BUILD,build-planner) --target layline
	@install -D build-planner/layline build/layline

demo: all ## plan, explain and validate the paper's 13B job on 64 A100; train a small model here
	build/layline plan $(DEMO_JOB)
	build/layline explain $(DEMO_JOB) --layout "dp64 tp1 pp1 mb1"
	build/layline validate data/published/hagemann2024_a100.csv --leave-out sweep
	build/layline train examples/demo.json --nproc 4

build/demo/king-james.txt: | setup-demo
	@scripts/demo_text.sh $@

test: setup-huggingface setup-frameworks setup-browser build/build.ninja ## all tests
	@$(call BUILD,build)
	@$(call CTEST,build)

test-asan: build-asan/build.ninja ## all tests but the trainer's, with address and undefined behaviour checked
	@$(call BUILD,build-asan)
	@$(call CTEST,build-asan)

test-tsan: build-tsan/build.ninja ## tests of what has threads, with data races checked
	@$(call BUILD,build-tsan) --target $(TSAN_TESTS:=_test)
	@TSAN_OPTIONS=suppressions=$(CURDIR)/tests/trainer/tsan.supp $(call CTEST,build-tsan) --tests-regex '^($(subst $(space),|,$(TSAN_TESTS)))\.' --exclude-regex '$(TSAN_UNSEEN)'

soak: build/build.ninja ## 200 kills of training runs, each resumed under another layout (half an hour)
	@$(call BUILD,build) --target trainer_programs_test
	LAYLINE_KILLS=200 build/trainer_programs_test --gtest_filter='Kills.*'

properties: setup-huggingface build/build.ninja ## tests of properties, PROPERTY_SEEDS (5) times on new random examples
	@$(call BUILD,build)
	@scripts/properties.sh build $(PROPERTY_SEEDS)

bench: setup-huggingface build/build.ninja ## benchmarks: planner, kernels, training against PyTorch
	@$(call BUILD,build) --target programs layline_bench layline_trainer_bench
	build/layline_bench
	build/layline_trainer_bench
	scripts/python.sh bench/trainer_vs_pytorch.py $(BENCH_FLAGS)

closed-loop: all ## the planner against the trainer on this machine: seconds, bytes, verdicts, picks (half an hour)
	@mkdir -p build/closed-loop
	build/layline bench --output build/closed-loop/machine.json
	bench/closed_loop.py --machine build/closed-loop/machine.json --check

closed-loop-slice: all
	bench/closed_loop.py --sweep bench/closed_loop_slice.json --folder build/closed-loop-slice --only bytes,verdicts --check

fuzz: setup-fuzz build-fuzz/build.ninja ## every fuzzer for FUZZ_SECONDS (60)
	@$(call BUILD,build-fuzz) --target fuzzers
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh

format: setup-lint ## format all C++ files in place
	@git ls-files --cached --others --exclude-standard '*.h' '*.cc' ':!third_party' | xargs clang-format-19 -i

lint: setup-lint build/build.ninja ## check format and clang-tidy of changed files
	@scripts/lint.sh

clean: ## remove all build folders
	rm -rf build build-planner build-dev build-asan build-tsan build-fuzz

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

setup-build setup-torch setup-huggingface setup-frameworks setup-demo setup-browser setup-lint setup-fuzz: setup-%:
	@scripts/setup.sh $*

# Once a folder is configured, the build itself notices changes of CMake files.
build/build.ninja: | setup-build setup-torch
	@$(CONFIGURE) release
build-%/build.ninja: | setup-build setup-torch
	@$(CONFIGURE) $*
build-planner/build.ninja: | setup-build
	@$(CONFIGURE) planner
build-fuzz/build.ninja: | setup-build setup-fuzz
	@$(CONFIGURE) fuzz
