# Unit tests of the host parsers and of naming; their sources mirror loaders/lib/host.
$(eval $(call unit_test,proc_test,tests/unit/loaders/lib/host/proc_test.c,host base,-ljansson))
$(eval $(call unit_test,syscalls_test,tests/unit/loaders/lib/host/syscalls_test.c,host base,))
$(eval $(call unit_test,args_test,tests/unit/loaders/lib/host/args_test.c,host base,))
$(eval $(call unit_test,runtime_test,tests/unit/loaders/lib/host/runtime_test.c,host base,))
$(eval $(call unit_test,engines_test,tests/unit/loaders/lib/host/engines_test.c,host base,-ljansson))
$(eval $(call unit_test,kallsyms_test,tests/unit/loaders/lib/host/kallsyms_test.c,host base,))
$(eval $(call unit_test,perfmap_test,tests/unit/loaders/lib/host/perfmap_test.c,host base,))
$(eval $(call unit_test,container_test,tests/unit/loaders/lib/host/container_test.c,host base,-ljansson))
$(eval $(call unit_test,instance_test,tests/unit/loaders/lib/host/instance_test.c,host base,))
$(foreach t,naming naming_excluded naming_container,\
  $(eval $(call unit_test,$(t)_test,$(addprefix tests/unit/loaders/lib/host/,$(t)_test.c namingfakes.c),host runtimes base,-ljansson)))
$(eval $(call unit_test,rules_test,tests/unit/loaders/lib/host/rules_test.c,host base,-ljansson))
$(eval $(call unit_test,late_test,tests/unit/loaders/lib/host/late_test.c,host base,))
