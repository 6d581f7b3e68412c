# SPDX-License-Identifier: BSD-2-Clause
# The only makefile. `make help` prints the targets.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules
# A plain `make` builds on all processors; other goals install packages before they build, and say themselves what is parallel.
ifeq ($(MAKELEVEL)$(or $(MAKECMDGOALS),all),0all)
MAKEFLAGS += --jobs=$(shell nproc)
endif
SHELL := /bin/bash

export PATH := $(PATH):/usr/sbin:/sbin

# SANITIZE=address,undefined builds beside the plain build, in a folder of its own.
SANITIZE ?=
BUILD := build$(if $(SANITIZE),/sanitize)
V ?= 0
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' $(1) $(2);)

CC := gcc
CLANG ?= clang
BPFTOOL ?= bpftool
PKG_CONFIG ?= pkg-config
VERSION := 0.1.0

# What apt installs; `make deps` compares it with what is there.
PACKAGES := gcc make clang llvm pkg-config libbpf-dev bpftool libelf-dev zlib1g-dev libjson-c-dev libssl-dev \
	libcmocka-dev uthash-dev libcap-dev libbrotli-dev libzstd-dev libsqlite3-dev libncurses-dev libseccomp-dev $(shell pkg-config --exists libllhttp 2>/dev/null && echo libllhttp-dev || echo node-llhttp)
TEST_PACKAGES := liburing-dev python3 sqlite3 python3-requests python3-httpx python3-aiohttp python3-pytest curl wget nodejs $(if $(shell command -v npm),,npm) iproute2 valgrind perl bats tmux mandoc dpkg-dev

LIBRARIES := libbpf json-c libcrypto libcap libseccomp zlib libbrotlidec libzstd sqlite3 ncursesw
PKG_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(LIBRARIES) 2>/dev/null)
PKG_LIBS = $(shell $(PKG_CONFIG) --libs $(LIBRARIES) 2>/dev/null)

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef -Wformat=2
CFLAGS ?= $(if $(SANITIZE),-O1,-O2) -g
override CFLAGS += -std=gnu17 $(WARN) -D_GNU_SOURCE -DNIGHTCLERK_VERSION='"$(VERSION)"' -include user/banned.h
ifneq ($(SANITIZE),)
override CFLAGS += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
override LDFLAGS += -fsanitize=$(SANITIZE)
endif
override LDFLAGS += -Wl,-z,relro,-z,now

# llhttp: packaged as a library from Debian 13 on; on Debian 12 the node-llhttp package ships the same C sources.
ifeq ($(shell $(PKG_CONFIG) --exists libllhttp 2>/dev/null && echo yes),yes)
LLHTTP_CFLAGS := $(shell $(PKG_CONFIG) --cflags libllhttp)
LLHTTP_LIBS := $(shell $(PKG_CONFIG) --libs libllhttp)
LLHTTP_OBJECTS :=
else
LLHTTP_DIR ?= /usr/share/llhttp
LLHTTP_CFLAGS := -isystem /usr/share/include/llhttp
LLHTTP_OBJECTS := $(patsubst %,$(BUILD)/llhttp/%.o,api http llhttp)
endif

USER_SOURCES := $(wildcard user/*.c)
USER_OBJECTS := $(USER_SOURCES:%.c=$(BUILD)/%.o)
LIB_OBJECTS := $(filter-out $(BUILD)/user/main.o,$(USER_OBJECTS))
LIB := $(BUILD)/libnightclerk.a
TOOLS := $(patsubst tools/%.c,$(BUILD)/%,$(wildcard tools/*.c))
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/*_test.c))
LIVE_TOOLS := $(patsubst tests/live/%.c,$(BUILD)/tests/live/%,$(wildcard tests/live/*.c))

.PHONY: all
all: $(BUILD)/nightclerk $(TOOLS) ## build build/nightclerk and the fixture tools

# ---- kernel side ----
BPF_CFLAGS := -g -O2 -target bpf -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Wno-missing-declarations -Ivmlinux \
	-D__TARGET_ARCH_$(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/') \
	-idirafter /usr/include/$(shell uname -m)-linux-gnu

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c | needs-packages
	$(call say,BPF,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@

$(BUILD)/bpf/%.skel.h: $(BUILD)/bpf/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $(subst .,_,$*)_bpf > $@

# ---- collector ----
$(BUILD)/user/capture.o: $(BUILD)/bpf/capture.skel.h
$(BUILD)/user/confine.o: $(BUILD)/bpf/confine.skel.h

$(BUILD)/user/%.o: user/%.c | needs-packages
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(PKG_CFLAGS) $(LLHTTP_CFLAGS) -I$(BUILD)/bpf -MMD -MP -c $< -o $@

$(BUILD)/llhttp/%.o: $(LLHTTP_DIR)/%.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -g -std=gnu17 $(LLHTTP_CFLAGS) $(if $(SANITIZE),-fsanitize=$(SANITIZE)) -c $< -o $@

$(LIB): $(LIB_OBJECTS) $(LLHTTP_OBJECTS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(BUILD)/nightclerk: $(BUILD)/user/main.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $< $(LIB) $(PKG_LIBS) $(LLHTTP_LIBS) -pthread

# ---- fixtures: share no code with the observer ----
$(BUILD)/%: tools/%.c | needs-packages
	$(call say,TOOL,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -MF $@.d $(LDFLAGS) -o $@ $< -pthread -lcrypto

# ---- tests ----
$(BUILD)/tests/unit/%: tests/unit/%.c $(LIB)
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(PKG_CFLAGS) $(LLHTTP_CFLAGS) -Iuser -Itests/unit -MMD -MP -MF $@.d $(LDFLAGS) -o $@ $< $(LIB) -lcmocka $(PKG_LIBS) $(LLHTTP_LIBS) -pthread

# The probe alone, driven through the library: what was sent must be what was captured.
URING_FLAGS = $(shell $(PKG_CONFIG) --exists liburing 2>/dev/null && echo -DHAVE_LIBURING -luring)
$(BUILD)/tests/live/capture_probe: tests/live/capture_probe.c $(LIB)
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(PKG_CFLAGS) -Iuser -MMD -MP -MF $@.d $(LDFLAGS) -o $@ $< $(LIB) $(PKG_LIBS) $(LLHTTP_LIBS) $(URING_FLAGS) -pthread

$(BUILD)/tests/live/%: tests/live/%.c
	$(call say,TOOL,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(PKG_CFLAGS) -MMD -MP -MF $@.d $(LDFLAGS) -o $@ $< -pthread -lcrypto -ljson-c

$(BUILD)/tests/bench/%: tests/bench/%.c
	$(call say,TOOL,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -MF $@.d $(LDFLAGS) -o $@ $< -pthread

# What the oracles compare with other implementations.
ORACLES := $(sort $(wildcard tests/oracles/*_oracle.py))
ORACLE_TOOLS := $(patsubst tests/oracles/%.c,$(BUILD)/tests/oracles/%,$(wildcard tests/oracles/*.c))

$(BUILD)/tests/oracles/%: tests/oracles/%.c $(LIB)
	$(call say,TOOL,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(PKG_CFLAGS) $(LLHTTP_CFLAGS) -Iuser -MMD -MP -MF $@.d $(LDFLAGS) -o $@ $< $(LIB) $(PKG_LIBS) $(LLHTTP_LIBS)

# ---- running them ----
CHECK := $(UNIT_TESTS)
LIVE := $(sort $(wildcard tests/live/*.t))
VALGRIND := valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect
# control_test runs out of descriptors: valgrind would close the one that is one too many behind our back.
# attempts_memory_test counts the bytes of a million calls, which valgrind does not change; it took six minutes.
# store_many_test counts by the exit status of fifty children, where valgrind tells of what their parent holds.
# audit_files_test, metrics_file_test and rotated_file_test open by openat2(2), which valgrind 3.19 does not know.
# heap_test is about malloc(3) of glibc, in whose place both put their own.
# drop_rights_test lives under a filter of system calls, and valgrind and the sanitizers make calls of their own.
VALGRIND_CHECK := $(filter-out %/control_test %/store_many_test %/attempts_memory_test %/audit_files_test \
	%/metrics_file_test %/rotated_file_test %/drop_rights_test %/heap_test,$(CHECK))
SANITIZE_CHECK := $(filter-out %/drop_rights_test %/heap_test,$(CHECK))
CLI := $(sort $(wildcard tests/cli/*.t))
RUN := /usr/bin/python3 tests/run.py

.PHONY: tests
tests: all manual $(UNIT_TESTS) $(LIVE_TOOLS) $(ORACLE_TOOLS) $(BUILD)/tests/bench/exchanges

.PHONY: unit-tests
unit-tests: $(UNIT_TESTS)

.PHONY: check
check: tests ## unit and case tests: no root, no network
	@$(RUN) --label unit $(CHECK) --label cli $(CLI)

.PHONY: check-deb
check-deb: tests ## the Debian package installed, upgraded, removed, purged, in an overlay of this machine (root)
	@$(RUN) --label package tests/package/deb.t

.PHONY: oracles
oracles: tests ## canonical JSON against Python's decimals, framing against node's and Python's parsers: 100,000 of each
	@ORACLE_COUNT=100000 $(RUN) --label oracle $(ORACLES)

.PHONY: memcheck
memcheck: tests ## the same under valgrind
	@$(RUN) --jobs $(shell nproc) --label valgrind --wrap '$(VALGRIND)' $(VALGRIND_CHECK)

.PHONY: live
live: tests ## real sockets and real clients on this kernel, in network namespaces of their own (root)
	@$(RUN) --label live $(LIVE)

.PHONY: demo
demo: setup ## the main job on real traffic: one client, two charges, one alert (root)
	@tools/demo

.PHONY: test
test: setup ## install what is missing, build, and run unit, command line and live tests, sanitizers and valgrind (root)
	@$(MAKE) --no-print-directory -s -j$(shell nproc) tests
	@$(MAKE) --no-print-directory -s -j$(shell nproc) SANITIZE=address,undefined unit-tests
	@$(RUN) --jobs $(shell nproc) --label unit $(CHECK) --label cli $(CLI) \
		--label sanitizers $(SANITIZE_CHECK:build/%=build/sanitize/%) \
		--label valgrind --wrap '$(VALGRIND)' $(VALGRIND_CHECK) --wrap '' \
		--label oracle $(ORACLES) \
		--label package tests/package/deb.t \
		--jobs 1 --label mutants tools/mutate-table --label live $(LIVE)

# Every allocation and every write failed once. The linker puts the failing calls in; see tests/torture/.
TORTURE := $(patsubst tests/torture/%.c,$(BUILD)/tests/torture/%,$(wildcard tests/torture/*_torture.c))
$(BUILD)/tests/torture/write_torture: WRAPPED := write
$(BUILD)/tests/torture/alloc_torture: WRAPPED := $(if $(SANITIZE),malloc calloc realloc)

$(BUILD)/tests/torture/%: tests/torture/%.c $(LIB)
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(PKG_CFLAGS) $(if $(SANITIZE),-DTORTURE_WRAP) -iquote user -iquote tests/unit -MMD -MP -MF $@.d $(LDFLAGS) \
		$(WRAPPED:%=-Wl,--wrap=%) -o $@ $< $(LIB) -lcmocka $(PKG_LIBS) $(LLHTTP_LIBS) -pthread

.PHONY: torture-programs
torture-programs: $(TORTURE)

.PHONY: torture
torture: torture-programs ## every allocation and every write failed once: no crash, no leak, no wrong verdict
	@$(MAKE) --no-print-directory -s SANITIZE=address,undefined torture-programs
	@$(RUN) --label torture $(TORTURE) --label sanitizers $(TORTURE:build/%=build/sanitize/%)

# libFuzzer: the whole collector is built with it, so that every branch guides the search.
FUZZ_BUILD := build/fuzz
FUZZERS := $(patsubst tests/fuzz/%_fuzz.c,%,$(wildcard tests/fuzz/*_fuzz.c))
FUZZ_SOURCES := $(filter-out user/main.c user/asked.c user/watch_screen.c user/capture%.c user/confine.c user/observer%.c user/session.c user/command_line.c user/cmd_%.c,$(USER_SOURCES))
FUZZ_FLAGS := -std=gnu17 -O1 -g -D_GNU_SOURCE -DNIGHTCLERK_VERSION='"$(VERSION)"' -include user/banned.h -iquote user -iquote tests/unit \
	-fsanitize=address,undefined -fno-sanitize-recover=all
SECONDS_EACH ?= 30

$(FUZZ_BUILD)/user/%.o: user/%.c
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link $(PKG_CFLAGS) $(LLHTTP_CFLAGS) -MMD -MP -c $< -o $@

# An archive: what only commands use, and what they lack here, is not linked.
$(FUZZ_BUILD)/libnightclerk.a: $(FUZZ_SOURCES:%.c=$(FUZZ_BUILD)/%.o) $(LLHTTP_OBJECTS)
	$(Q)rm -f $@ && ar rcs $@ $^

$(FUZZ_BUILD)/%_fuzz: tests/fuzz/%_fuzz.c $(FUZZ_BUILD)/libnightclerk.a
	$(call say,FUZZ,$@)
	$(Q)$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer $(PKG_CFLAGS) $(LLHTTP_CFLAGS) -o $@ $^ $(PKG_LIBS) $(LLHTTP_LIBS)

.PHONY: fuzz
fuzz: $(FUZZERS:%=$(FUZZ_BUILD)/%_fuzz) ## every libFuzzer target for SECONDS_EACH=30 seconds, address and undefined sanitizers
	@set -e; for f in $(FUZZERS); do mkdir -p $(FUZZ_BUILD)/corpus/$$f; \
		echo "fuzz $$f: $(SECONDS_EACH) s"; \
		$(FUZZ_BUILD)/$${f}_fuzz -max_total_time=$(SECONDS_EACH) -verbosity=0 -print_final_stats=1 -rss_limit_mb=2048 -timeout=10 \
			-artifact_prefix=$(FUZZ_BUILD)/$$f- $(FUZZ_BUILD)/corpus/$$f tests/fuzz/seeds/$$f 2>&1 \
			| grep -E 'stat::number_of_executed_units|ERROR|SUMMARY|Test unit' ; test $${PIPESTATUS[0]} -eq 0; done

# Daemons that come with a package are not started: RUNLEVEL=1.
BENCH_PACKAGES := nginx-light wrk redis-server redis-tools tcpdump strace
BENCH ?=
# The recordings that they replay are made by the library itself.
$(BUILD)/tests/bench/model_calls $(BUILD)/tests/bench/exchanges: $(BUILD)/tests/bench/%: tests/bench/%.c $(LIB)
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(PKG_CFLAGS) -iquote user -iquote tests/unit -MMD -MP -MF $@.d $(LDFLAGS) -o $@ $< $(LIB) -lcmocka $(PKG_LIBS) $(LLHTTP_LIBS) -pthread

.PHONY: bench-store
bench-store: all $(BUILD)/tests/bench/model_calls ## a million model calls replayed into a store, and their report: BENCH="1000000 200000"
	@/usr/bin/python3 tests/bench/store.py $(BENCH)

.PHONY: bench
bench: setup $(BUILD)/tests/bench/talk ## what it costs against bare and other tools, as ratios: BENCH="--rounds 5 --seconds 3" (root)
	@RUNLEVEL=1 tools/install-packages $(BENCH_PACKAGES)
	@/usr/bin/python3 tests/bench/bench.py $(BENCH)

.PHONY: bench-stages
bench-stages: all $(BUILD)/tests/bench/exchanges ## what each stage of the collector takes, by replayed recordings: BENCH="--rounds 5 --no-callgrind"
	@/usr/bin/python3 tests/bench/stages.py $(BENCH)

.PHONY: bench-growth
bench-growth: all $(BUILD)/tests/bench/exchanges ## what an exchange costs among many connections, and with many calls remembered
	@/usr/bin/python3 tests/bench/growth.py $(BENCH)

.PHONY: bench-memory
bench-memory: $(BUILD)/tests/unit/attempts_memory_test ## what a million remembered calls take, in each mix
	@$< 1000000

.PHONY: bench-idle
bench-idle: all ## memory with 10,000 idle connections and 1,000 requests/s: at most 64 MiB (root)
	@/usr/bin/python3 tests/bench/idle.py

# A kernel is SERIES or SERIES-PREEMPTION; PREEMPT is for those that name none. JOBS guests run side by side.
KERNEL ?= 5.10,6.1,6.12,6.12-full,7
PREEMPT ?=
JOBS ?= 1
comma := ,
GUESTS = $(subst $(comma), ,$(KERNEL))
VM_PACKAGES = qemu-system-x86 busybox-static cpio xz-utils \
	$(shell [ -x /usr/lib/qemu/virtiofsd ] || apt-cache search --names-only '^virtiofsd$$' 2>/dev/null | cut -d ' ' -f 1)

.PHONY: vm
vm: setup ## the live tests on stock Debian kernels under QEMU: KERNEL=5.10,6.1,6.12,7 PREEMPT=full JOBS=2 (root)
	@tools/install-packages $(VM_PACKAGES)
	@$(MAKE) --no-print-directory -s $(LIVE_TOOLS)
	@status=0; PREEMPT=$(PREEMPT) NIGHTCLERK_TEST_SECONDS=7200 $(RUN) --jobs $(JOBS) --label vm --wrap tests/vm/boot $(GUESTS) || status=1; \
		tests/vm/table $(foreach guest,$(GUESTS),build/vm/guest-$(guest)$(if $(findstring -,$(guest)),,$(PREEMPT:%=-%))) || status=1; exit $$status

.PHONY: mutate-table
mutate-table: tests ## flip every cell of the decision table: exactly its tests must fail
	@tools/mutate-table

# Packages first: what the build itself looks for may only be there afterwards.
.PHONY: setup
setup: deps
	@$(MAKE) --no-print-directory -s -j$(shell nproc) all

.PHONY: help
help: ## print the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

# ---- the manual, and what is installed ----
MANUAL := $(patsubst docs/man/%,$(BUILD)/man/%,$(wildcard docs/man/*.[15]))

# The OPTIONS of a command's page are what the program's own table says.
$(BUILD)/man/%: docs/man/% $(BUILD)/nightclerk
	$(call say,MAN,$@)
	@mkdir -p $(@D)
	$(Q)$(if $(filter nightclerk-%.1,$*),$(BUILD)/nightclerk help --mdoc $(patsubst nightclerk-%.1,%,$*) >$@.options,:)
	$(Q)sed -e '/^\.\\" OPTIONS$$/ { r $@.options' -e 'd }' $< >$@

.PHONY: manual
manual: $(MANUAL)

prefix ?= /usr/local
bindir = $(DESTDIR)$(prefix)/bin
mandir = $(DESTDIR)$(prefix)/share/man
completionsdir = $(DESTDIR)$(prefix)/share/bash-completion/completions
unitdir = $(DESTDIR)$(prefix)/lib/systemd/system
docdir = $(DESTDIR)$(prefix)/share/doc/nightclerk

.PHONY: install
install: all manual ## install program, manual, completion, service: DESTDIR, prefix=/usr/local
	@install -D -m 755 -t $(bindir) $(BUILD)/nightclerk
	@install -D -m 644 -t $(mandir)/man1 $(filter %.1,$(MANUAL))
	@install -D -m 644 -t $(mandir)/man5 $(filter %.5,$(MANUAL))
	@install -d -m 755 $(completionsdir)
	@$(BUILD)/nightclerk completion bash >$(completionsdir)/nightclerk && chmod 644 $(completionsdir)/nightclerk
	@install -D -m 644 -t $(unitdir) packaging/nightclerk.service
	@install -D -m 644 -t $(docdir)/examples packaging/audit.json

.PHONY: uninstall
uninstall: ## remove what install put there
	@rm -f $(bindir)/nightclerk $(completionsdir)/nightclerk
	@rm -f $(patsubst $(BUILD)/man/%,$(mandir)/man1/%,$(filter %.1,$(MANUAL)))
	@rm -f $(patsubst $(BUILD)/man/%,$(mandir)/man5/%,$(filter %.5,$(MANUAL)))
	@rm -f $(unitdir)/nightclerk.service $(docdir)/examples/audit.json
	@rmdir --ignore-fail-on-non-empty $(docdir)/examples $(docdir) 2>/dev/null || true

.PHONY: deb
deb: all manual ## build/nightclerk_VERSION_ARCHITECTURE.deb, with what install puts in place
	@packaging/deb/build $(VERSION) $(BUILD)


.PHONY: clean
clean: ## remove build/
	rm -rf build

.PHONY: deps
deps: ## install the Debian packages that are missing (root)
	@tools/install-packages $(PACKAGES) $(TEST_PACKAGES)

.PHONY: build-deps
build-deps: ## install those that the build alone needs (root)
	@tools/install-packages $(PACKAGES)

# Only says what is missing; the build itself never installs.
.PHONY: needs-packages
needs-packages:
	@for c in $(CC) $(CLANG) $(BPFTOOL) $(PKG_CONFIG); do command -v $$c >/dev/null || { echo "make: $$c is missing: run 'make deps' as root" >&2; exit 1; }; done
	@$(PKG_CONFIG) --exists $(LIBRARIES) || { echo "make: a library of [$(LIBRARIES)] is missing: run 'make deps' as root" >&2; exit 1; }

-include $(shell find build -name '*.d' 2>/dev/null)
