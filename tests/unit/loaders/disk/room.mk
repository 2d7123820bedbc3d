# Unit tests of loaders/disk: its pure parts.
$(eval $(call unit_test,disk_slow_test,tests/unit/loaders/disk/slow_test.c loaders/disk/slow.c,base,))
$(eval $(call unit_test,disk_devices_test,tests/unit/loaders/disk/devices_test.c loaders/disk/devices.c,bpf host store base,-lbpf -lelf -lz -lsqlite3))
$(eval $(call unit_test,disk_waitstack_test,tests/unit/loaders/disk/waitstack_test.c loaders/disk/waitstack.c,bpf host store base,-lbpf -lelf -lz -lsqlite3))
$(eval $(call unit_test,disk_syncfile_test,tests/unit/loaders/disk/syncfile_test.c loaders/disk/syncfile.c loaders/disk/mounts.c loaders/disk/filename.c,base,))
$(eval $(call unit_test,disk_mounts_test,tests/unit/loaders/disk/mounts_test.c loaders/disk/layers.c loaders/disk/mounts.c loaders/disk/filename.c,base,))
$(eval $(call unit_test,disk_lasting_test,tests/unit/loaders/disk/lasting_test.c loaders/disk/lasting.c,base,))
