# Fuzzer of what sonde-java reads: recordings, the blocks that are made of them, and answers of a machine.
$(eval $(call fuzzer,java_fuzz,tests/fuzz/java/java_fuzz.c,javaread host base,-lpthread))
