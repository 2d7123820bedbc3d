# Unit tests of loaders/logs: what reads the bytes of logs.
$(foreach t,level words messages forms counts follow pulse,$(eval $(call unit_test,logs_$(t)_test,tests/unit/loaders/logs/$(t)_test.c,logsread host base,)))
