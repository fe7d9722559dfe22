# The two commands: `make run` measures, `make test` proves. Both install what they need. `make check` is the short loop and installs
# nothing; `make test-all` is everything.
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
# The everyday build and what is shipped: `Cargo.toml` has both profiles.
RELEASE := target/$(HOST)/release/binderperf
SMALL := target/$(HOST)/small/binderperf
DEBUG := target/$(HOST)/debug/binderperf
# Test binaries that need a real driver run inside a guest.
GUEST_RUNNER := TEST_RUNNER="$(CURDIR)/$(DEBUG) vm --exec"
EXAMPLES := $(basename $(notdir $(wildcard crates/binder/examples/*.rs))) contended
LIBRARY := abi sys driver embedded backend ipc binder aidl
ARGS ?=

.PHONY: run build small check test test-all unit alone embedded shim clients loom guest phone arm64 doc counts record-counts bench trials siege fuzz install files release packages deb clean

run: build
	$(RELEASE) run $(ARGS)

build:
	@tools/install-deps run
	BINDERPERF_GIT="$$(git describe --always --dirty 2>/dev/null)" cargo build --release

# The program as it is shipped, with its library for unmodified programs.
small:
	@tools/install-deps run
	BINDERPERF_GIT="$$(git describe --always --dirty 2>/dev/null)" cargo build --profile small
	tools/preload preload $(HOST) $(dir $(SMALL))

# Goes on behind a failure, and ends with a list of what failed and a line of counts. Stages joined by + run side by side: while tests
# wait for guests and deadlines, others are compiled.
TEST_STAGES := check doc unit+loom+counts embedded+guest+phone
test:
	@tools/install-deps test
	@tools/stages $(TEST_STAGES)

# That, and what takes long, needs much of the network, or measures.
test-all:
	@tools/install-deps test
	@tools/stages $(TEST_STAGES) arm64 packages shim clients alone siege fuzz

check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
# What cargo does not take for a test unless it is named.
	cargo clippy --workspace --test alone --test on_driver --test instructions --test cost -- -D warnings
	cargo clippy -p preload --features exports -- -D warnings

# Everything that cargo takes for a test.
unit:
	@tools/install-deps test
	tools/run-tests

# Accuracy and ratios of rates, which want a machine that does nothing else: whether known causes are named in recordings and a slower
# side is found, counted instructions are the same from boot to boot, time that the host took is seen, and two on a busy CPU are as fast as asleep.
alone:
	@tools/install-deps test
	cargo test --workspace --test alone
	cargo test -p binderperf-binder --test cost --profile small
	cargo test -p binderperf-embedded --lib hardly_slower_than_asleep -- --ignored
	cargo test --workspace --test guest -- --ignored --skip inside:: --skip forward::

# The rate of a process's calls while eight hostile processes besiege its broker.
siege:
	cargo test -p binderperf-embedded --lib siege::a_neighbour_keeps_its_rate -- --ignored --nocapture

# Other people's Binder programs, unmodified, with this project's service manager, services and clients; downloads them. As root.
clients:
	@tools/install-deps clients
	cargo build --bin binderperf --example own-echo
	tools/preload dev $(HOST) $(dir $(DEBUG))
	tools/clients $(DEBUG)

# Every order of events that the memory model allows, for the code on shared memory.
loom:
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
		cargo test -p binderperf-sys -p binderperf-embedded --release --lib loom_

# The runtime's tests, the hot path's counters and the examples on the embedded driver, on this machine.
embedded: $(DEBUG)
	BINDERPERF_TEST_DRIVER=embedded BINDERPERF_REQUIRE=driver tools/run-tests --test on_driver
	for example in $(EXAMPLES); do \
		BINDERPERF_BROKER=$(CURDIR)/$(DEBUG) $(dir $(DEBUG))examples/$$example embedded:private || exit 1; done

# The conformance suite as an unmodified client of /dev/binder, through the library that `binderperf shim` preloads. What it
# is preloaded into must be a dynamic program, unlike the build for users.
shim:
	RUSTFLAGS="-C target-feature=-crt-static" cargo build --target-dir target/dynamic
	tools/preload dev $(HOST) target/dynamic/$(HOST)/debug
	tools/shim-conformance target/dynamic/$(HOST)/debug/binderperf

# The same on a real driver, in a guest, where a missing driver is a failure. Examples exit with 1 when
# they do not see what they show. One CPU is enough for them, and QEMU's emulation of several is at fault now and then.
guest: $(DEBUG)
	BINDERPERF_REQUIRE=driver $(GUEST_RUNNER) tools/run-tests --test on_driver
	BINDERPERF_TEST_DRIVER=kernel $(GUEST_RUNNER) tools/run-tests --test situations --test model
	for example in $(EXAMPLES); do $(DEBUG) vm --smp 1 --exec $(dir $(DEBUG))examples/$$example || exit 1; done

# The program and the examples as `unit` builds them: with one set of packages everything is compiled once.
.PHONY: $(DEBUG)
$(DEBUG):
	cargo build --workspace --bins --examples

# The phone build compiles. It needs no C toolchain.
phone:
	rustup target add aarch64-unknown-linux-musl
	cargo check --target aarch64-unknown-linux-musl

# The phone build on Debian's arm64 kernel, emulated. What it does shows without optimisation, and sooner.
arm64: $(DEBUG)
	@tools/install-deps test
	rustup target add aarch64-unknown-linux-musl
	cargo build --target aarch64-unknown-linux-musl --config profile.dev.opt-level=0 --config profile.dev.debug=false
	$(DEBUG) vm --kernel arm64 --script tests/arm64.txt

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Instructions of what the shipped build does without a driver, against crates/steps/tests/instructions.txt; where a
# change of them is meant, `make record-counts` writes them down. The everyday build counts more, which must be noticed.
counts:
	@tools/install-deps test
	cargo test -p steps --test instructions --profile small -- --skip a_slower_build
	cargo test --workspace --test instructions a_slower_build

record-counts:
	@tools/install-deps test
	BINDERPERF_RECORD_COUNTS=1 cargo test -p steps --test instructions --profile small as_recorded

# Cost of the runtime over raw ioctls and over a pipe, and of `top` and of recording, in guest instructions: the same every time. Then
# the embedded driver beside this machine's floor, what serialisation costs alone, and whether known delays
# are found, with the targets; first whether known causes are named in recordings, and a broker under siege.
bench: small alone siege
	$(SMALL) vm --icount -- throughput binder --driver kernel --controls pipe,raw --benchmark_filter='/4$$' --max x_raw=1.10
	$(SMALL) vm --icount -- trace overhead --driver kernel -i 20000 --rounds 1
	cargo bench -p bench --profile small
	$(SMALL) throughput compare-flavours --driver embedded

# How often `ab` is right on this machine: 20 times the same twice, 10 times 5 % more. Minutes. Then 100 comparisons of `kpi` in counted
# instructions on one kernel, and 20 with 1 % more: an hour where guests are emulated.
trials:
	cargo test --test cli ab:: -- --ignored --nocapture --test-threads=1
	tools/kpi-trials $(DEBUG)

# The program with its library, its manual, its completions and the documents that they name.
PREFIX ?= /usr/local
SHARE := $(DESTDIR)$(PREFIX)/share
install: small files

# Those files, with PROGRAM for one, written by SELF, a build for this machine.
PROGRAM ?= $(SMALL)
SELF ?= $(SMALL)
files:
	install -D $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/binderperf
# For unmodified programs, and for those that are linked with it; only where a shared library was made for the same target.
	if [ -e $(dir $(PROGRAM))libbinderperf.so ]; then tools/preload-files $(dir $(PROGRAM))libbinderperf.so $(DESTDIR)$(PREFIX); fi
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions \
		$(SHARE)/fish/vendor_completions.d $(SHARE)/doc/binderperf/docs
	$(SELF) man --out $(SHARE)/man/man1
	$(SELF) completions bash >$(SHARE)/bash-completion/completions/binderperf
	$(SELF) completions zsh >$(SHARE)/zsh/site-functions/_binderperf
	$(SELF) completions fish >$(SHARE)/fish/vendor_completions.d/binderperf.fish
	install -m 644 docs/*.md $(SHARE)/doc/binderperf/docs

# Folder of packages, and the targets of a release made on x86-64.
DIST := target/dist
RELEASE_TARGETS := $(sort $(HOST) aarch64-unknown-linux-musl armv7-unknown-linux-gnueabihf)

# A static binary for each target, also as a tarball and as a Debian package, with manual and completions, and a bill of
# materials; checksums of all.
release: small
	@tools/install-deps release
	rustup target add $(RELEASE_TARGETS)
	rm -rf $(DIST)
	for target in $(RELEASE_TARGETS); do \
		BINDERPERF_GIT="$$(git describe --always --dirty)" cargo build --profile small --target $$target && \
		install -D target/$$target/small/binderperf $(DIST)/binderperf-$$target && \
		BINDERPERF=$(SMALL) tools/package target/$$target/small/binderperf $$target $(DIST) && \
		tools/sbom $$target >$(DIST)/binderperf-$$target.spdx || exit 1; done
	cd $(DIST) && sha256sum * >SHA256SUMS

# The package of the debug build, installed and used in a new tree of Debian.
packages: $(DEBUG)
	@tools/install-deps test
# The library as the registry would get it, each crate with those below it.
	cargo package --quiet --no-verify --allow-dirty $(LIBRARY:%=-p binderperf-%)
	rm -rf target/packages
	mkdir -p target/packages/stripped
	strip -o target/packages/stripped/binderperf $(DEBUG)
	tools/preload dev $(HOST) target/packages/stripped
	strip --strip-unneeded target/packages/stripped/libbinderperf.so
	tools/package target/packages/stripped/binderperf $(HOST) target/packages
	tools/try-package target/packages/*.deb

# The Debian package and the tarball for this machine alone.
deb: small
	@tools/install-deps release
	tools/package $(SMALL) $(HOST) $(DIST)

# Each fuzz target for so many seconds: tools/fuzz says what it needs. Seeds are in fuzz/seeds.
FUZZ_SECONDS ?= 60
fuzz:
	tools/fuzz $(FUZZ_SECONDS)

clean:
	cargo clean
