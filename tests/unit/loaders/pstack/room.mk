# Unit tests of loaders/pstack: descriptors that a thread waits for.
$(eval $(call unit_test,pstack_wait_fds_test,tests/unit/loaders/pstack/wait_fds_test.c,pstackwatch base,))
