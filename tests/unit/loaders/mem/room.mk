# Unit tests of loaders/mem: its pure parts, and this process's own pages.
$(foreach t,period pages pressure,$(eval $(call unit_test,mem_$(t)_test,tests/unit/loaders/mem/$(t)_test.c loaders/mem/$(t).c,host base,)))
