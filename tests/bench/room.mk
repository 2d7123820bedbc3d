# tests/bench: what sonde costs and how fast it answers, beside its peers in the same run.
.PHONY: bench bench-stacks bench-goheap long-bench-smoke
bench: all $(B)/tests/makestore
	@$(PYTHON) tests/bench/bench.py --write docs/BENCHMARKS.md
	@$(PYTHON) tests/bench/stacks.py --write docs/BENCHMARKS.md

# one short round: that everything runs
long-bench-smoke: all workloads $(B)/tests/makestore $(B)/tests/goheap_read
	@$(PYTHON) tests/bench/bench.py --smoke
	@$(PYTHON) tests/bench/stacks.py --smoke
	@$(PYTHON) tests/bench/files.py --smoke
	@$(PYTHON) tests/bench/indexing.py --smoke
	@$(PYTHON) tests/bench/offcpu.py --smoke
	@$(PYTHON) tests/bench/offcpu_redis.py --smoke || test $$? = 77
	@$(PYTHON) tests/bench/goheap.py --smoke
	@$(PYTHON) tests/bench/memory/memory.py --smoke
	@$(PYTHON) tests/bench/supervisor.py --smoke
	@$(PYTHON) tests/bench/always.py --smoke
	@$(PYTHON) tests/bench/whole.py --smoke
	@$(PYTHON) tests/bench/flight.py --smoke
	@$(PYTHON) tests/bench/host.py --smoke
	@$(PYTHON) tests/bench/script_frames.py --runtimes python --smoke
	@$(PYTHON) tests/bench/net.py --smoke
	@$(PYTHON) tests/bench/disk/disk.py --smoke

# what an event costs, held against tests/bench/ratchet.tsv: fails where one has become 15 % dearer. About 4 minutes, on a quiet machine
.PHONY: bench-ratchet
bench-ratchet: all
	@$(PYTHON) tests/bench/ratchet.py

bench-stacks: all
	@$(PYTHON) tests/bench/stacks.py --write docs/BENCHMARKS.md

# what a start costs where 200 different libraries are mapped: about 3 minutes
.PHONY: bench-files
bench-files: all
	@$(PYTHON) tests/bench/files.py --write docs/BENCHMARKS.md

# what reading new large files takes from a busy host: about 3 minutes
.PHONY: bench-indexing
bench-indexing: all
	@$(PYTHON) tests/bench/indexing.py --write docs/BENCHMARKS.md

# what watching each switch costs, beside perf sched and, where it is installed, libbpf-tools' offcputime
.PHONY: bench-offcpu
bench-offcpu: all
	@$(PYTHON) tests/bench/offcpu.py --write docs/BENCHMARKS.md

# what it takes from a server at full load: about 3 minutes
.PHONY: bench-redis
bench-redis: all
	@$(PYTHON) tests/bench/offcpu_redis.py --write docs/BENCHMARKS.md

# a Go program's heap profile, beside asking it for /debug/pprof/heap: about 8 minutes
bench-goheap: all $(B)/tests/goheap_read
	@$(PYTHON) tests/bench/goheap.py --write docs/BENCHMARKS.md

# what family mem costs: at rest, at 20 000 page faults a second, with many processes. 3 minutes
.PHONY: bench-memory
bench-memory: all
	@$(PYTHON) tests/bench/memory/memory.py --write docs/BENCHMARKS.md

# what sonded itself takes among 500 processes, 50 of them new each second: about 2 minutes
.PHONY: bench-supervisor
bench-supervisor: all
	@$(PYTHON) tests/bench/supervisor.py --write docs/BENCHMARKS.md

# what cpu and offcpu take, always on, on a busy host with 20 containers and 100 forks a second: about 5 minutes
.PHONY: bench-always
bench-always: all
	@$(PYTHON) tests/bench/always.py --write docs/BENCHMARKS.md

# what all of sonde takes by what is switched on, idle and busy: about 20 minutes
.PHONY: bench-whole
bench-whole: all
	@$(PYTHON) tests/bench/whole.py --write docs/BENCHMARKS.md

# what the flight ring adds on the busy host, with it and without it in turn, and what a kept window takes: about 30 minutes
.PHONY: bench-flight
bench-flight: all
	@$(PYTHON) tests/bench/flight.py --write docs/BENCHMARKS.md

# looking at one profile, beside perf report and go tool pprof on the same stacks: about 2 minutes
.PHONY: bench-readers
bench-readers: all
	@$(PYTHON) tests/bench/readers.py --write docs/BENCHMARKS.md

# a build captured for so many minutes (MINUTES, default 60), archived, beside perf.data and pprof
.PHONY: bench-seal
bench-seal: all
	@$(PYTHON) tests/bench/seal.py --minutes $(or $(MINUTES),60) --write docs/BENCHMARKS.md

# questions to 14 days of a build's hour, which was kept in KEPT: about 3 minutes
.PHONY: bench-realdays
bench-realdays: all
	@$(PYTHON) tests/bench/realdays.py $(or $(KEPT),build/hour) --write docs/BENCHMARKS.md

# what frames of scripts cost a sample, of each runtime that is here: about 1 minute each
.PHONY: bench-runtimes
bench-runtimes: all
	@$(PYTHON) tests/bench/script_frames.py

# what family host takes with 30 containers and 500 processes: about 2 minutes
.PHONY: bench-host
bench-host: all
	@$(PYTHON) tests/bench/host.py

# what 14 days of it take, with minutes in place of ten seconds: a generated hour
OBJECTS += $(B)/obj/tests/bench/makers/makehost.o
$(B)/tests/makehost: $(B)/obj/tests/bench/makers/makehost.o $(B)/lib/store.a $(B)/lib/base.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lsqlite3 -lzstd -lpthread -lm
.PHONY: bench-minutes
bench-minutes: all $(B)/tests/makehost
	@$(PYTHON) tests/bench/minutes.py

# what family net takes of 100 000 connections, 10 000 open beside them, and of none: about 2 minutes
.PHONY: bench-net
bench-net: all workloads
	@$(PYTHON) tests/bench/net.py

# what family disk takes of requests, of calls on files and on sockets, and its times beside fio's and biolatency's: about 2 minutes
.PHONY: bench-disk
bench-disk: all
	@$(PYTHON) tests/bench/disk/disk.py

# what probes inside TLS add to one write and one read, beside probes where others put them: about 3 minutes
$(B)/tests/tls_pair: $(B)/obj/tests/bench/mix/tls_pair.o
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS_) -pie $(LDFLAGS) -o $@ $^ -lssl -lcrypto
.PHONY: bench-tls
bench-tls: all $(B)/tests/tls_pair
	@$(PYTHON) tests/bench/tls.py

# what family l7 takes of 4 000 requests a second, of pipelines as fast as they go, and of 10 000 connections: about 3 minutes
.PHONY: bench-requests
bench-requests: all
	@$(PYTHON) tests/bench/requests.py

# a day of 50 million samples: how fast questions are answered from plain rows, and in how much memory
OBJECTS += $(B)/obj/tests/bench/makers/makeday.o
$(B)/tests/makeday: $(B)/obj/tests/bench/makers/makeday.o $(B)/lib/store.a $(B)/lib/base.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lsqlite3 -lzstd -lpthread -lm
.PHONY: bench-day
bench-day: all $(B)/tests/makeday
	@$(PYTHON) tests/bench/day.py
# the same, archived
.PHONY: bench-day-archived
bench-day-archived: all $(B)/tests/makeday
	@$(PYTHON) tests/bench/day.py --archived --write docs/BENCHMARKS.md

# what it takes to feed Prometheus and ClickHouse, and a fleet of hosts in ClickHouse
.PHONY: bench-export
bench-export: all
	@$(PYTHON) tests/bench/export.py

# what it takes to ask Go programs for their profiles: about 3 minutes
.PHONY: bench-scrape
bench-scrape: all workloads
	@$(PYTHON) tests/bench/scrape.py

# the served page in a browser, over a generated day
.PHONY: bench-serve
bench-serve: all $(B)/tests/makeday
	@$(PYTHON) tests/bench/serve.py --days 14 --write docs/BENCHMARKS.md

# days of a large host with five families: what each verb takes
OBJECTS += $(B)/obj/tests/bench/makers/makescale.o
$(B)/tests/makescale: $(B)/obj/tests/bench/makers/makescale.o $(B)/lib/store.a $(B)/lib/base.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lsqlite3 -lzstd -lpthread -lm
.PHONY: bench-scale
bench-scale: all $(B)/tests/makescale
	@$(PYTHON) tests/bench/scale.py --write docs/BENCHMARKS.md

# each tool of sonde mcp over a store of a million stacks: bytes, seconds, memory
.PHONY: bench-assistant
bench-assistant: all $(B)/tests/makescale
	@$(PYTHON) tests/bench/assistant.py --write docs/BENCHMARKS.md

# the user-space work of a capture over fixed input, for ratchet.py to count its instructions
FIXED_OBJS := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/bench/fixed/*.c) $(filter-out loaders/maps/main.c,$(wildcard loaders/maps/*.c loaders/maps/*/*.c)))
OBJECTS += $(filter $(B)/obj/tests/%,$(FIXED_OBJS))
$(B)/tests/fixed: $(FIXED_OBJS) $(patsubst %,$(B)/lib/%.a,bpf host sandbox runtimes image store base)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS_) -pie $(LDFLAGS) -o $@ $^ -lbpf -lseccomp -lelf -lsqlite3 -ljansson -lz -lzstd -lpthread -lm

workloads: $(B)/tests/fixed

# what sonde takes beside its peers, one agent at a time, five rounds: about 4 hours. What is built of peers: build.py there
.PHONY: bench-peers
bench-peers: all
	@$(PYTHON) tests/bench/peers/peers.py --write docs/BENCHMARKS.md

# the first two minutes on a host with 2 000 processes and 1 500 files that sonde has not seen: about 3 minutes
.PHONY: bench-contact
bench-contact: all
	@$(PYTHON) tests/bench/peers/contact.py --write docs/BENCHMARKS.md
