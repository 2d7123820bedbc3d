# Unit tests of loaders/mem: its pure parts, and this process's own pages.
$(foreach t,period pages pressure pageclass majorfile replaced,$(eval $(call unit_test,mem_$(t)_test,tests/unit/loaders/mem/$(t)_test.c loaders/mem/$(t).c,host base,)))
$(eval $(call unit_test,mem_framebase_test,tests/unit/loaders/mem/framebase_test.c loaders/mem/framebase.c loaders/mem/pages.c,host base,))
$(eval $(call unit_test,mem_hugefaults_test,tests/unit/loaders/mem/hugefaults_test.c loaders/mem/hugefaults.c loaders/mem/period.c,host base,))
