# Unit tests of loaders/logs: what reads the bytes of logs, and which files are open.
$(foreach t,level words messages forms counts follow pulse unitname,$(eval $(call unit_test,logs_$(t)_test,tests/unit/loaders/logs/$(t)_test.c,logsread host base,-lz)))
$(eval $(call unit_test,logs_tracked_test,tests/unit/loaders/logs/tracked_test.c loaders/logs/tracked.c loaders/logs/places.c,logsread host base,-ljansson -lz))
