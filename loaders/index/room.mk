# loaders/index: all parsing in an archive, so that tests and fuzzers link it; main.c alone stays out.
INDEX_LIBS = -ldw -lelf -lseccomp -llzma -lz -liberty
$(eval $(call archive,index,$(filter-out %/main.c,$(wildcard loaders/index/*.c loaders/index/*/*.c) loaders/lib/code/x86insn.c) loaders/lib/sandbox/sandbox.c))
$(eval $(call program,sonde-index,loaders/index/main.c,index image base,$(INDEX_LIBS)))
