# BPF code against the kernel's own. The test's program is built as the probes are.
KSTACK_CHECK := tests/unit/probes/kstack_check
$(B)/obj/$(KSTACK_CHECK).bpf.o: $(KSTACK_CHECK).bpf.c
	@mkdir -p $(@D)
	@echo "  BPF   $<"
	$(Q)$(CLANG) -g -O2 -target bpf -D__TARGET_ARCH_x86 -I. -Wall -Wno-unused-function $(if $(WERROR),-Werror) \
	    -MMD -MP -c $< -o $@
SKELETONS += $(B)/gen/$(KSTACK_CHECK).skel.h
$(B)/gen/$(KSTACK_CHECK).skel.h: $(B)/obj/$(KSTACK_CHECK).bpf.o
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name kstack_check_bpf > $@.tmp && mv $@.tmp $@
$(eval $(call unit_test,kstack_test,tests/unit/probes/kstack_test.c,host image base,-lbpf -lz))
