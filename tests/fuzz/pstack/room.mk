# The fuzzer of what sonde-pstack reads of what threads wait for.
$(eval $(call fuzzer,pstack_watch_fuzz,tests/fuzz/pstack/pstack_watch_fuzz.c loaders/pstack/wait_fds.c,base,))
