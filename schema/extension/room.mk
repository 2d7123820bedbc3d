# schema/extension: samples as tables of SQLite; an archive for sonde, and a library to load.
EXTENSION_SOURCES := $(wildcard schema/extension/*.c)
$(eval $(call archive,extension,$(EXTENSION_SOURCES)))
$(foreach f,$(EXTENSION_SOURCES),$(eval CFLAGS_$(subst /,_,$(f:.c=)) := -DSQLITE_CORE))

EXTENSION     := $(B)/lib/sonde.so
EXTENSION_PIC := $(patsubst %.c,$(B)/obj/pic/%.o,$(EXTENSION_SOURCES) $(addprefix schema/store/packed/,module.c table.c columns.c sample_scan.c stack_columns.c column.c) schema/base/hash.c schema/base/idmap.c schema/base/strbuf.c schema/base/mem.c schema/base/log.c schema/base/units.c schema/base/limits/memlimit.c)
OBJECTS += $(EXTENSION_PIC)
all: $(EXTENSION)
$(EXTENSION_PIC): $(B)/obj/pic/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_) $(CFLAGS) -fPIC -fvisibility=hidden -ffunction-sections -MMD -MP -c $< -o $@
$(EXTENSION): $(EXTENSION_PIC)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS_) $(LDFLAGS) -shared -Wl,--gc-sections $(if $(SAN)$(FUZZ),,-Wl,-z,defs) -o $@ $^ -lzstd
