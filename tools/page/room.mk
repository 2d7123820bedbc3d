# The flame graph page: the scripts are joined and packed (as plain text they would be two thirds of the page); the loader
# unpacks them. page_blob.c includes template, style, loader and packed script in the binary (.incbin). The page's
# Content-Security-Policy allows only these hashes.
PAGE     := $(B)/gen/tools/page
PAGE_JS  := $(patsubst %,tools/page/script/%.js,data spread looks diff build layout format colour draw graph strip theme state tabs table tree save \
              brush who tip view actions report keys main)
GENERATED += $(PAGE)/page.js $(PAGE)/page.js.gz64 $(PAGE)/page.min.css $(PAGE)/hash.h

$(PAGE)/page.js: $(PAGE_JS)
	@mkdir -p $(@D)
	$(Q)(echo '(() => {'; echo "'use strict';"; cat $^ | sed -E 's/^\t+//; /^\/\/ /d'; echo '})();') > $@.tmp && mv $@.tmp $@

$(PAGE)/page.js.gz64: $(PAGE)/page.js
	$(Q)gzip -9 -n -c $< | base64 -w 0 > $@.tmp && mv $@.tmp $@

# without unneeded blanks, because each page contains the style as plain text
$(PAGE)/page.min.css: tools/page/page.css
	@mkdir -p $(@D)
	$(Q)sed -E 's/^\t+//; /^\/\*.*\*\/$$/d; s/ ?\{ ?/{/g; s/;? \}/}/g; s/([:;,]) /\1/g' $< > $@.tmp && mv $@.tmp $@

# SHA-256 in base64 of exactly the bytes that the browser runs or applies
PAGE_HASH = printf "$$(sha256sum < $(1) | cut -c1-64 | sed 's/../\\x&/g')" | base64
$(PAGE)/hash.h: $(PAGE)/page.js tools/page/script/loader.js $(PAGE)/page.min.css
	@mkdir -p $(@D)
	$(Q)! grep -niE '</script|<!--' tools/page/script/loader.js
	$(Q)(echo "#define PAGE_SCRIPT_HASH \"$$($(call PAGE_HASH,$(PAGE)/page.js))\""; \
	     echo "#define PAGE_LOADER_HASH \"$$($(call PAGE_HASH,tools/page/script/loader.js))\""; \
	     echo "#define PAGE_STYLE_HASH \"$$($(call PAGE_HASH,$(PAGE)/page.min.css))\"") > $@.tmp && mv $@.tmp $@

# the compiler does not see the dependency on .incbin
$(B)/obj/tools/page/page_blob.o: tools/page/page.html $(PAGE)/page.min.css tools/page/script/loader.js $(PAGE)/page.js.gz64
$(B)/obj/tools/page/page_fill.o: $(PAGE)/hash.h
