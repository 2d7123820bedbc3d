# tests/receivers: build/receivers/collector and pyroscope. They fetch Go modules, so that nothing but long-export asks for them.
RECEIVERS := $(B)/receivers/collector $(B)/receivers/pyroscope
.PHONY: receivers
receivers: $(RECEIVERS)
$(B)/receivers/%: tests/receivers/%/main.go tests/receivers/%/go.mod tests/receivers/%/go.sum
	@mkdir -p $(@D)
	$(Q)cd tests/receivers/$* && GOFLAGS=-buildvcs=false nice go build -p 1 -trimpath -o $(abspath $@) .
