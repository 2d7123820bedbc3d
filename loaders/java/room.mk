# loaders/java: what reads a stranger's bytes in an archive, so that tests and fuzzers link it.
$(eval $(call archive,javaread,$(addprefix loaders/java/,jcmd.c jguard.c jfrblock.c jfrpick.c onrecord.c)))
$(eval $(call loader,java,$(addprefix loaders/java/,main.c javaprocs.c javatls.c javastore.c jhelper.c jtalk.c jattach.c jfrread.c chunkfile.c agentjar.c),javaread))

# The agent: for Java 8 and newer. Without a JDK that makes such classes the file is empty, and the part is left out.
AGENT := loaders/java/agent
AGENT_JAR := $(B)/gen/$(AGENT).jar
JAVAC ?= $(shell command -v javac)
JAR ?= $(shell command -v jar)
$(AGENT_JAR): $(wildcard $(AGENT)/*/sonde/tls/*.java) $(AGENT)/manifest $(AGENT)/build.sh
	@mkdir -p $(@D)
	@echo "  JAR   $@"
	$(Q)sh $(AGENT)/build.sh $(AGENT) $@ "$(JAVAC)" "$(JAR)"
$(B)/obj/loaders/java/agentjar.o: $(AGENT_JAR)
CFLAGS_loaders_java_agentjar = -DAGENTJAR_FILE='"$(AGENT_JAR)"'
