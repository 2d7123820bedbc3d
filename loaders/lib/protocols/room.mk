# loaders/lib/protocols: from the bytes of a connection to requests. Pure.
$(eval $(call archive,protocols,$(wildcard loaders/lib/protocols/*.c)))
