# Unit tests of loaders/java: its pure parts.
$(eval $(call unit_test,java_jcmd_test,tests/unit/loaders/java/jcmd_test.c,javaread base,))
$(eval $(call unit_test,java_jguard_test,tests/unit/loaders/java/jguard_test.c,javaread host base,-lpthread))
$(eval $(call unit_test,java_jfrblock_test,tests/unit/loaders/java/jfrblock_test.c,javaread base,))
$(eval $(call unit_test,java_onrecord_test,tests/unit/loaders/java/onrecord_test.c,javaread host base,-lpthread))
