# loaders/lib/host: reading the live host. No libbpf, no libelf, no libdw.
$(eval $(call archive,host,$(wildcard loaders/lib/host/*/*.c)))
# names of system calls, as this architecture's headers number them
GENERATED += $(B)/gen/loaders/lib/host/proc/syscalls.inc
$(B)/gen/loaders/lib/host/proc/syscalls.inc: loaders/lib/host/room.mk
	@mkdir -p $(@D)
	$(Q)echo '#include <asm/unistd.h>' | $(CC) -E -dM - | \
	    sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9][0-9]*\)$$/[\2] = "\1",/p' | sort -u >$@
