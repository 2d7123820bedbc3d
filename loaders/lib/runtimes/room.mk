# loaders/lib/runtimes: script frames of runtimes. Pure over a reader of memory.
$(eval $(call archive,runtimes,$(wildcard loaders/lib/runtimes/*.c loaders/lib/runtimes/*/*.c) loaders/lib/code/x86insn.c))
