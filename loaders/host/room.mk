# loaders/host: what reads and measures in an archive, so that tests and fuzzers link it.
$(eval $(call archive,hostread,$(addprefix loaders/host/,parse.c textfile.c filesystems.c fillers.c jvmfile.c) $(addprefix loaders/host/events/,change_detect.c mountset.c oomlog.c container_life.c) $(addprefix loaders/host/logs/,podmanlog.c)))
$(eval $(call loader,host,$(addprefix loaders/host/,main.c hostwide.c cgroups.c groupfiles.c processes.c ended.c jvms.c) loaders/host/events/container_events.c $(addprefix loaders/host/logs/,dockerfiles.c loglines.c journallines.c),hostread))
