# Unit tests of loaders/lib/runtimes. pylines_test compares with what each Python on this machine says of its standard library.
$(foreach t,pylines pycode python scriptobject php ruby hotspot v8tables v8flow script beam beamname,$(eval $(call unit_test,$(t)_test,$(call tested,loaders/lib/runtimes,$(t)),runtimes base,)))
