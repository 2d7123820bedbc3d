# BPF code against the kernel's own, and against what a program says of itself. The tests' programs are built as the probes are.
define check_skeleton
$(B)/obj/tests/unit/probes/$(1)_check.bpf.o: tests/unit/probes/$(1)_check.bpf.c
	@mkdir -p $$(@D)
	@echo "  BPF   $$<"
	$$(Q)$$(CLANG) -g -O2 -target bpf -D__TARGET_ARCH_x86 -I. -Wall -Wno-unused-function $$(if $$(WERROR),-Werror) \
	    -MMD -MP -c $$< -o $$@
SKELETONS += $(B)/gen/tests/unit/probes/$(1)_check.skel.h
$(B)/gen/tests/unit/probes/$(1)_check.skel.h: $(B)/obj/tests/unit/probes/$(1)_check.bpf.o
	@mkdir -p $$(@D)
	$$(Q)$$(BPFTOOL) gen skeleton $$< name $(1)_check_bpf > $$@.tmp && mv $$@.tmp $$@
endef
$(eval $(call check_skeleton,kstack))
$(eval $(call check_skeleton,python))
$(eval $(call unit_test,kstack_test,tests/unit/probes/kstack_test.c,host base,-lbpf -lz))
$(eval $(call unit_test,probes_python_test,tests/unit/probes/python_test.c,index image base,-lbpf $(INDEX_LIBS)))
$(eval $(call unit_test,offcpu_draw_test,tests/unit/probes/offcpu_draw_test.c,base,-lm))
$(eval $(call unit_test,probes_disk_test,tests/unit/probes/disk_test.c,bpf host base,-lbpf -lelf -lz))
