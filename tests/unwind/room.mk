# SPDX-License-Identifier: Apache-2.0
# tests/unwind: the unwinder at every instruction of a program. The programs stepped through are built by the test.
STEPPER := $(B)/tests/unwind/stepper
STEPPER_OBJECTS := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/unwind/stepper.c tests/unwind/target.c))
OBJECTS += $(STEPPER_OBJECTS)
workloads: $(STEPPER)
$(STEPPER): $(STEPPER_OBJECTS) $(B)/lib/host.a $(B)/lib/image.a $(B)/lib/base.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS) -o $@ $^
