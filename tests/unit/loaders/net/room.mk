# Unit tests of loaders/net: what records say, both ends of connections, what the kernel counts.
$(eval $(call unit_test,net_record_test,tests/unit/loaders/net/record_test.c,netparts base,))
$(eval $(call unit_test,net_conns_test,tests/unit/loaders/net/conns_test.c,netparts base,))
$(eval $(call unit_test,net_hostsfile_test,tests/unit/loaders/net/hostsfile_test.c,netparts base,))
