# export: sonde-export, the store in the forms of other engines. Reads the store, links no libbpf; its queries become C strings.
EXPORT_QUERIES := $(sort $(wildcard export/queries/*.sql))
GENERATED += $(B)/gen/export/queries.h
$(B)/gen/export/queries.h: $(EXPORT_QUERIES) export/room.mk
	@mkdir -p $(@D)
	$(Q){ echo '/* made from export/queries/NAME.sql */'; echo 'static const struct { const char *name, *text; } EXPORT_QUERIES[] = {'; \
	  for f in $(EXPORT_QUERIES); do n=$${f##*/}; \
	    echo "{\"$${n%.sql}\","; sed -e 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' $$f; echo '},'; done; \
	  echo '};'; } > $@.tmp && mv $@.tmp $@

$(eval $(call archive,export,$(filter-out export/main.c,$(wildcard export/*.c))))
$(eval $(call program,sonde-export,export/main.c,export extension store image base,-lsqlite3 -ljansson -lz -lpthread -lm))
