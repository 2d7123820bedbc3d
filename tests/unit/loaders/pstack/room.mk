# Unit tests of loaders/pstack: descriptors that a thread waits for.
$(eval $(call unit_test,pstack_watch_test,tests/unit/loaders/pstack/watch_test.c,pstackwatch base,))
