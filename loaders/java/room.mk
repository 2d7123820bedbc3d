# loaders/java: what reads a stranger's bytes in an archive, so that tests and fuzzers link it.
$(eval $(call archive,javaread,$(addprefix loaders/java/,jcmd.c jguard.c jfrblock.c jfrpick.c onrecord.c)))
$(eval $(call loader,java,$(addprefix loaders/java/,main.c javaprocs.c javastore.c jhelper.c jtalk.c jattach.c jfrread.c chunkfile.c),javaread))
