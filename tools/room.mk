# tools: the query tool. No libbpf, no libelf: what touches the live host are helper programs that it runs.
$(eval $(call archive,tools,$(filter-out tools/main.c,$(wildcard tools/*.c))))
$(eval $(call program,sonde,tools/main.c,tools store image base,-lsqlite3 -ljansson -lz -lm))
