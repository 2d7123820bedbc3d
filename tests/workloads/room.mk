# SPDX-License-Identifier: Apache-2.0
#
# tests/workloads: small programs built with frame pointers (but for those named -nofp) and no sibling calls. Never with
# the sanitizers. One whose compiler is not there is left out, and the tests that want it say so.
W        := $(B)/tests/workloads
W_CFLAGS := -D_GNU_SOURCE -O2 -g -Wall -Wextra -fno-omit-frame-pointer -fno-optimize-sibling-calls \
            -fno-ipa-icf -fno-shrink-wrap -fcf-protection=none
W_C      := thrash text/movetext onecall connstorm twoacks uringtalk burn crowd namer jit shares shares-static burn-static jit-static hotlines storm serves
W_ALL    := $(addprefix $(W)/,$(W_C) burn-nofp waits waits-nofp flip-red flip-blue flip-dl libred.so libblue.so clockshim.so typedshim.so itershim.so twins/libred.so twins/libblue.so)
W_ALL    += $(W)/probed $(if $(shell command -v rustc),$(W)/probed-rust) $(if $(shell command -v go),$(W)/probed-go)
W_ALL    += $(if $(shell command -v g++),$(W)/shares-cpp $(W)/shares-cpp-static $(W)/hotlines-cpp)
W_ALL    += $(if $(shell command -v rustc),$(W)/shares-rust $(W)/shares-rust-static)
W_ALL    += $(if $(shell command -v go),$(W)/shares-go $(W)/hotlines-go $(W)/heapwork-go $(W)/offwork-go $(W)/profiles-go $(W)/scrapework-go $(W)/servego-go $(W)/relay-go)

workloads: $(W_ALL)

$(W)/%: tests/workloads/%.c tests/workloads/work.h
	@mkdir -p $(@D)
	$(Q)gcc $(W_CFLAGS) -o $@ $< -lpthread
$(W)/%-nofp: tests/workloads/%.c tests/workloads/work.h
	@mkdir -p $(@D)
	$(Q)gcc $(W_CFLAGS) -fomit-frame-pointer -o $@ $< -lpthread
$(W)/%-static: tests/workloads/%.c tests/workloads/work.h
	@mkdir -p $(@D)
	$(Q)gcc $(W_CFLAGS) -static -o $@ $< -lpthread
$(W)/waits $(W)/waits-nofp: tests/workloads/waits.c tests/workloads/waitkinds.c tests/workloads/waits.h tests/workloads/taskclock.h tests/workloads/work.h
	@mkdir -p $(@D)
	$(Q)gcc $(W_CFLAGS) $(if $(findstring nofp,$@),-fomit-frame-pointer) -o $@ $(filter %.c,$^) -lpthread
$(W)/shares-cpp $(W)/shares-cpp-static: tests/workloads/shares.cc tests/workloads/work.h
	@mkdir -p $(@D)
	$(Q)g++ $(W_CFLAGS) $(if $(findstring static,$@),-static) -o $@ $<
$(W)/hotlines-cpp: tests/workloads/hotlines.c tests/workloads/work.h
	@mkdir -p $(@D)
	$(Q)g++ -x c++ $(W_CFLAGS) -o $@ $<
$(W)/shares-rust $(W)/shares-rust-static: tests/workloads/shares.rs
	@mkdir -p $(@D)
	$(Q)env -u MAKEFLAGS rustc -C opt-level=2 -g -C force-frame-pointers=yes $(if $(findstring static,$@),-C target-feature=+crt-static) \
	    --crate-name shares -o $@ $<
$(W)/shares-go $(W)/hotlines-go $(W)/heapwork-go $(W)/offwork-go $(W)/profiles-go: $(W)/%-go: tests/workloads/go/%.go
	@mkdir -p $(@D)
	$(Q)GO111MODULE=off CGO_ENABLED=0 GOFLAGS= GOTOOLCHAIN=local go build -o $@ $<
# with net/http: Debian's Go has its packages built already
GO_BUILT := $(firstword $(wildcard /usr/lib/go-1.19/bin/go) go)
$(W)/scrapework-go $(W)/servego-go $(W)/relay-go: $(W)/%-go: tests/workloads/go/%.go
	@mkdir -p $(@D)
	$(Q)GO111MODULE=off CGO_ENABLED=0 GOFLAGS= GOTOOLCHAIN=local $(GO_BUILT) build -o $@ $<
# as programs are that people have: with sibling calls, stripped of what their languages do not need
$(W)/probed: tests/workloads/probed/probed.c
	@mkdir -p $(@D)
	$(Q)gcc -D_GNU_SOURCE -O2 -Wall -Wextra -o $@ $< -lpthread
$(W)/probed-rust: tests/workloads/probed/probed.rs
	@mkdir -p $(@D)
	$(Q)env -u MAKEFLAGS rustc -C opt-level=2 --crate-name probed -o $@ $<
$(W)/probed-go: tests/workloads/go/probed.go
	@mkdir -p $(@D)
	$(Q)GO111MODULE=off CGO_ENABLED=0 GOFLAGS= GOTOOLCHAIN=local go build -ldflags '-s -w' -o $@ $<
# one source, two files of equal layout at one fixed address
$(W)/flip-red $(W)/flip-blue: $(W)/flip-%: tests/workloads/flip_exec.c tests/workloads/flip_lib.c tests/workloads/work.h
	@mkdir -p $(@D)
	$(Q)gcc $(W_CFLAGS) -DCOLOUR=$* -no-pie -o $@ $<
$(W)/libred.so $(W)/libblue.so: $(W)/lib%.so: tests/workloads/flip_lib.c tests/workloads/work.h
	@mkdir -p $(@D)
	$(Q)gcc $(W_CFLAGS) -DCOLOUR=$* -shared -fPIC -Wl,-Bsymbolic -o $@ $<
$(W)/clockshim.so $(W)/typedshim.so $(W)/itershim.so: $(W)/%.so: tests/workloads/%.c
	@mkdir -p $(@D)
	$(Q)gcc -D_GNU_SOURCE -O2 -Wall -Wextra -shared -fPIC -o $@ $<
# two different files that claim to be one and the same
$(W)/twins/libred.so $(W)/twins/libblue.so: $(W)/twins/lib%.so: tests/workloads/flip_lib.c tests/workloads/work.h
	@mkdir -p $(@D)
	$(Q)gcc $(W_CFLAGS) -DCOLOUR=$* -shared -fPIC -Wl,-Bsymbolic -Wl,--build-id=0x00112233445566778899aabbccddeeff00112233 \
	    -o $@ $<
$(W)/flip-dl: tests/workloads/flip_dl.c tests/workloads/work.h
	@mkdir -p $(@D)
	$(Q)gcc $(W_CFLAGS) -o $@ $< -ldl
# a libnvidia-ml.so.1 that tells all, one that fails half of its calls, an old one, and one that hangs
NVML := $(addprefix $(W)/nvml/,all fails old hangs)
workloads: $(NVML:=/libnvidia-ml.so.1)
$(W)/nvml/all/%: KIND := 1
$(W)/nvml/fails/%: KIND := 2
$(W)/nvml/old/%: KIND := 3
$(W)/nvml/hangs/%: KIND := 4
$(NVML:=/libnvidia-ml.so.1): tests/workloads/fakenvml.c
	@mkdir -p $(@D)
	$(Q)gcc -D_GNU_SOURCE -O2 -Wall -Wextra -DKIND=$(KIND) -fvisibility=hidden -shared -fPIC -o $@ $<
