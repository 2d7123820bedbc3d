# SPDX-License-Identifier: Apache-2.0
# tests/kernels: the built programs on the kernels of Debian's suites, in qemu.
#   make long-kernels                        all of them, workloads of 8 s
#   make long-kernels KERNELS="5.10 6.1"     some; KERNEL_SECONDS=3: shorter
KERNELS        ?=
KERNEL_SECONDS ?= 8
.PHONY: long-kernels
long-kernels: all workloads
	@SONDE_KERNELS="$(KERNELS)" SONDE_KERNEL_SECONDS=$(KERNEL_SECONDS) $(PYTEST) tests/kernels --ignore=tests/kernels/test_systemd.py --ignore=tests/kernels/test_docker_v2.py \
	    --durations=4 \
	    --junitxml=$(RESULTS)/kernels.xml

# the unit under a real systemd, in one guest
.PHONY: long-systemd
long-systemd: all workloads
	@$(PYTEST) tests/kernels/test_systemd.py --junitxml=$(RESULTS)/systemd.xml

# a real dockerd on cgroup version 2 alone, in one guest
.PHONY: long-docker-v2
long-docker-v2: all workloads
	@$(PYTEST) tests/kernels/test_docker_v2.py --junitxml=$(RESULTS)/docker-v2.xml
