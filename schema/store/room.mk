# schema/store, schema/facts and schema/sql: the store. The migrations become C strings; nothing is copied by hand.
$(eval $(call archive,store,$(wildcard schema/store/*/*.c schema/store/*/*/*.c schema/facts/*.c)))
CFLAGS_schema_store_packed_module := -DSQLITE_CORE

MIGRATIONS := $(sort $(wildcard schema/sql/*.sql))
GENERATED += $(B)/gen/schema/sql/migrations.h
$(B)/gen/schema/sql/migrations.h: $(MIGRATIONS) schema/sql schema/store/room.mk # the folder's time changes where a file gets another name
	@mkdir -p $(@D)
	$(Q){ echo '/* made from schema/sql/NNNN-*.sql */'; \
	  echo 'static const struct { int version; const char *name, *sql; } MIGRATIONS[] = {'; \
	  for f in $(MIGRATIONS); do n=$${f##*/}; v=$${n%%-*}; \
	    echo "{$$((10#$$v)), \"$$n\","; sed -e 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' $$f; echo '},'; done; \
	  echo '};'; } > $@.tmp && mv $@.tmp $@

# what they come to, for a new file
GENERATED += $(B)/gen/schema/sql/whole.h
$(B)/gen/schema/sql/whole.h: schema/sql/flatten.c schema/sql/plain.h schema/sql/oldest.h $(B)/gen/schema/sql/migrations.h
	$(Q)$(CC) -std=gnu17 -O1 -I. -I$(B)/gen -o $(@D)/flatten $< -lsqlite3
	$(Q)$(@D)/flatten > $@.tmp && mv $@.tmp $@
