# Fuzzers of loaders/index and schema/image. Which source files each is to cover (>= 80 % of lines in 60 s):
#   elfindex   elffile.c elfsyms.c gotable.c symset.c compose.c indexer.c note.c minidebug.c debuglink.c (demangle.c)
#   pclntab    pclntab.c
#   debuglink  debuglink.c note.c
#   image      schema/image/image.c
FUZZ_INDEX := elfindex pclntab debuglink image
$(foreach f,$(FUZZ_INDEX),$(eval $(call fuzzer,$(f)_fuzz,tests/fuzz/index/$(f)_fuzz.c,index image base,$(INDEX_LIBS))))
