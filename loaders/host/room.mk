# loaders/host: what reads and measures in an archive, so that tests and fuzzers link it.
$(eval $(call archive,hostread,$(addprefix loaders/host/,parse.c textfile.c watch.c oomlog.c lives.c filesystems.c jvmfile.c podmanlog.c journalhash.c journalfile.c)))
$(eval $(call loader,host,$(addprefix loaders/host/,main.c hostwide.c cgroups.c cgroups_ended.c processes.c ended.c happened.c happened_oom.c dockerfiles.c loglines.c journallines.c jvms.c),hostread))
