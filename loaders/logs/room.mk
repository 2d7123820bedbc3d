# loaders/logs: what reads the bytes of logs in an archive, so that tests and fuzzers link it.
$(eval $(call archive,logsread,$(addprefix loaders/logs/,jsonpull.c forms.c level.c words.c messages.c counts.c follow.c packed/packed.c wire.c pulse.c unitname.c)))
$(eval $(call loader,logs,$(addprefix loaders/logs/,main.c places.c tracked.c rows.c reader.c reading.c),logsread))
