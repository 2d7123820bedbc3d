# SPDX-License-Identifier: Apache-2.0
#
# sonde: one non-recursive makefile. It knows how to build an archive, a program, a BPF skeleton, a unit test and
# a fuzzer; each room's room.mk says what is built from which sources. `make help` prints the lines that begin with ##:
#
## make                     the programs, in build/bin
## make dev                 packages, a build with sanitizers, one unit test, compile_commands.json
## make check               the everyday tests (as root also those that record)
## make unit-tests          the unit tests' programs, in build/tests/unit
## make build/tests/unit/NAME   one of them
## make check-layout        the rules of the house (tests/check)
## make check-e2e           end-to-end tests; E2E=tests/e2e/query runs a part
## make check-clang         compiles all sources with clang
## make long-for-change     the long tests that a change touches
## make long-NAME           one long test; make long runs all (tests/long.tsv)
## make FUZZ=1 fuzzers      the fuzzers, in build/fuzz/tests/fuzz
## make bench               the benchmarks (tests/bench)
## make score               the questions of a newcomer's first hour
## make man                 writes into the man pages what comes from tables
## make compile_commands.json   for clangd and clang-tidy
## make deb, tarball, image, release   what people install (packaging/)
## make install, uninstall  DESTDIR=, PREFIX=/usr
## make clean               removes build/
##
## SAN=1       with ASan and UBSan, in build/san        CC=clang   another compiler (with B=build/clang)
## WERROR=1    warnings are errors                      V=1        prints the commands

.DEFAULT_GOAL := all
SHELL := /bin/bash
MAKEFLAGS += --no-builtin-rules

CC      := $(if $(filter default,$(origin CC)),gcc,$(CC))
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /sbin/bpftool /usr/local/sbin/bpftool) bpftool)
PREFIX  ?= /usr
B       ?= build$(if $(SAN),/san)$(if $(FUZZ),/fuzz)

WARN     := -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes \
            -Wvla $(if $(WERROR),-Werror)
CPPFLAGS += -D_GNU_SOURCE -I. -I$(B)/gen
CFLAGS   ?= $(if $(SAN),-O1 -g1,-O2 -g)
CFLAGS_  := -std=gnu17 $(WARN) -fno-omit-frame-pointer -fstack-protector-strong -fPIE -ffile-prefix-map=$(CURDIR)=.
LDFLAGS  ?=
LDFLAGS_ := -Wl,-z,relro,-z,now,-z,noexecstack
ifeq (,$(SAN)$(FUZZ)$(filter -O0,$(CFLAGS)))
CFLAGS_  += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
endif
ifdef SAN
# -O1 -g1 builds in half the time; without -O2's ranges format-truncation is a guess
CFLAGS_  += -fsanitize=address,undefined -fno-sanitize-recover=undefined -Wno-format-truncation
LDFLAGS  += -fsanitize=address,undefined
endif
ifdef FUZZ
CC       := $(CLANG)
CFLAGS_  += -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined \
            -fprofile-instr-generate -fcoverage-mapping
LDFLAGS  += -fsanitize=fuzzer,address,undefined -fprofile-instr-generate
endif

PROGRAMS :=
STATIC_PROGRAMS :=
UNIT_TESTS :=
FUZZERS :=
SKELETONS :=
OBJECTS :=

# $(call archive,NAME,SOURCES): build/lib/NAME.a
define archive
$(1)_OBJS := $$(patsubst %.c,$(B)/obj/%.o,$(2))
OBJECTS += $$($(1)_OBJS)
$(B)/lib/$(1).a: $$($(1)_OBJS)
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(Q)$(AR) rcs $$@ $$^
endef

# What the store's columns are compressed with (docs/decisions/0190).
store_libs = $(if $(filter store,$(1)),-lzstd)

# $(call program,NAME,SOURCES,ARCHIVES,LIBS): build/bin/NAME. Archives are given users first.
define program
PROGRAMS += $(B)/bin/$(1)
$(1)_OBJS := $$(patsubst %.c,$(B)/obj/%.o,$(2))
OBJECTS += $$($(1)_OBJS)
$(B)/bin/$(1): $$($(1)_OBJS) $(patsubst %,$(B)/lib/%.a,$(3))
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	$$(Q)$$(CC) $$(CFLAGS_) $$(CFLAGS) $$(LDFLAGS_) -pie $$(LDFLAGS) -o $$@ $$^ $(4) $(call store_libs,$(3))
# the same for the tarball, with all libraries in it; what the linker warns of are calls that packaging/static tames (files_only.c)
STATIC_PROGRAMS += $(B)/static/$(1)
$(B)/static/$(1): $$($(1)_OBJS) $(patsubst %,$(B)/lib/%.a,$(3)) $$(STATIC_OBJS)
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	$$(Q)$$(CC) $$(CFLAGS_) $$(CFLAGS) $$(LDFLAGS_) -static-pie $$(LDFLAGS) -o $$@ $$^ -Wl,--start-group $(4) $(call store_libs,$(3)) $$(STATIC_LIBS) -Wl,--end-group
endef

# The families, as families.c lists them: each has its loader in loaders/NAME, and programs in probes/NAME.bpf.c if it loads any.
FAMILIES := $(shell sed -n 's/^\t{\.name = "\([a-z0-9]*\)".*/\1/p' schema/families/families.c)

# $(call loader,NAME,SOURCES,ARCHIVES): build/bin/sonde-NAME, a program upon the common loop
loader = $(call program,sonde-$(1),$(2),$(3) bpf host sandbox runtimes image store base,-lbpf -lseccomp -lsqlite3 -ljansson -lz -lpthread -lm)

# $(call unit_test,NAME,SOURCE,ARCHIVES,LIBS): build/tests/unit/NAME, a cmocka program
define unit_test
UNIT_TESTS += $(B)/tests/unit/$(1)
OBJECTS += $(patsubst %.c,$(B)/obj/%.o,$(2))
$(B)/tests/unit/$(1): $(patsubst %.c,$(B)/obj/%.o,$(2) tests/unit/test.c) $(patsubst %,$(B)/lib/%.a,$(3))
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS_) $$(CFLAGS) $$(LDFLAGS_) -pie $$(LDFLAGS) -o $$@ $$^ -lcmocka $(4) $(call store_libs,$(3))
endef

# $(call tested,FOLDER,NAME): the unit test NAME_test.c in tests/unit/FOLDER or in a folder of it
tested = $(firstword $(wildcard tests/unit/$(1)/$(2)_test.c tests/unit/$(1)/*/$(2)_test.c))

# $(call fuzzer,NAME,SOURCE,ARCHIVES,LIBS): build/fuzz/tests/fuzz/NAME, a libFuzzer program (make FUZZ=1 fuzzers)
define fuzzer
FUZZERS += $(B)/tests/fuzz/$(1)
$(B)/tests/fuzz/$(1): $(patsubst %.c,$(B)/obj/%.o,$(2)) $(patsubst %,$(B)/lib/%.a,$(3))
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS_) $$(CFLAGS) $$(LDFLAGS_) -pie $$(LDFLAGS) -o $$@ $$^ $(4) $(call store_libs,$(3))
endef

# $(call skeleton,NAME): probes/NAME.bpf.c -> build/gen/probes/NAME.skel.h
define skeleton
SKELETONS += $(B)/gen/probes/$(1).skel.h
$(B)/gen/probes/$(1).skel.h: $(B)/obj/probes/$(1).bpf.o
	@mkdir -p $$(@D)
	$$(Q)$(BPFTOOL) gen skeleton $$< name $(subst -,_,$(1))_bpf > $$@.tmp && mv $$@.tmp $$@
endef

Q := $(if $(V),,@)

ROOMS := $(filter-out $(B)/%,$(wildcard */room.mk */*/room.mk */*/*/room.mk */*/*/*/room.mk */*/*/*/*/room.mk))
include $(ROOMS)

all: $(PROGRAMS)
static: $(STATIC_PROGRAMS)
unit-tests: $(UNIT_TESTS)
objects: $(OBJECTS)
fuzzers: $(FUZZERS)

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_) $(CFLAGS) $(CFLAGS_$(subst /,_,$*)) -MMD -MP -c $< -o $@

# probes/lib/kern.h has minimal kernel types; the BPF programs include nothing of the host but libbpf's headers.
$(B)/obj/probes/%.bpf.o: probes/%.bpf.c
	@mkdir -p $(@D)
	@echo "  BPF   $<"
	$(Q)$(CLANG) -g -O2 -target bpf -fdebug-compilation-dir=. -D__TARGET_ARCH_x86 -I. -Wall -Wno-unused-function $(if $(WERROR),-Werror) \
	    -MMD -MP -c $< -o $@

# every object may need a skeleton or generated header: make them first
$(OBJECTS): | $(SKELETONS) $(GENERATED)

help:
	@sed -n 's/^## \{0,1\}//p' Makefile

# a newcomer's first command: what is missing is installed (as root), the programs are built with sanitizers
dev:
	@sh scripts/deps.sh test
	@$(MAKE) --no-print-directory compile_commands.json
	@$(MAKE) --no-print-directory SAN=1 B=build/san all build/san/tests/unit/base_test
	build/san/tests/unit/base_test
	@echo "dev: build/san/bin/sonde is ready; next: CONTRIBUTING.md, docs/TOUR.md"

# made every time: sources may have come or gone
compile_commands.json:
	$(Q)$(MAKE) --no-print-directory -n -B V=1 objects | $(PYTHON) scripts/compile-commands.py > $@.tmp && mv $@.tmp $@

clean:
	rm -rf build

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)

.PHONY: all static unit-tests objects fuzzers clean help dev compile_commands.json
.SECONDARY:
