# loaders/net: what is pure or has no program of its own in an archive, so that tests and fuzzers link it.
$(eval $(call archive,netparts,$(addprefix loaders/net/,record.c conns.c counts.c others.c hostsfile.c marks.c)))
$(eval $(call loader,net,$(addprefix loaders/net/,main.c hooks.c store_rows.c procs.c netns.c hostnames.c talks.c),netparts))
