# loaders/host: what reads and measures in an archive, so that tests and fuzzers link it.
$(eval $(call archive,hostread,$(addprefix loaders/host/,parse.c meter.c textfile.c watch.c oomlog.c lives.c filesystems.c)))
$(eval $(call loader,host,$(addprefix loaders/host/,main.c hostwide.c cgroups.c processes.c ended.c happened.c dockerfiles.c),hostread))
