/* SPDX-License-Identifier: Apache-2.0 */
/* kinds: the table. A new kind is one entry here, its number in the header, and a row in a
 * migration; tests/check/test_kinds.py and amounts_test fail where a word is missing. */
#include "schema/store/model/kinds.h"
#include "schema/base/array.h"

#include <string.h>

/* clang-format off */
static const struct store_kind_info kinds[STORE_KINDS] = {
	[STORE_KIND_CPU] = {STORE_KIND_CPU, "cpu", STORE_COUNTER, STORE_SAMPLES, STORE_TIME, STORE_TIME, "samples", "cpu",
		0, false, "time on CPU", {"used", "began to use", "used before"},
		.push = "cpu", .series = "process_cpu"},
	[STORE_KIND_OFFCPU] = {STORE_KIND_OFFCPU, "offcpu", STORE_DURATION, STORE_EVENTS, STORE_TIME, STORE_TIME, "events", "delay",
		0, false, "time blocked", {"was blocked for", "began to be blocked for", "was blocked before for"}, .counted = "waits",
		.family = "offcpu", .push = "offcpu"},
	[STORE_KIND_RUNQUEUE] = {STORE_KIND_RUNQUEUE, "runqueue", STORE_DURATION, STORE_EVENTS, STORE_TIME, STORE_TIME, "events", "delay",
		0, false, "time ready but not running", {"waited for a CPU", "began to wait for a CPU:", "waited for a CPU before:"}, .counted = "waits",
		.family = "offcpu", .push = "runqueue"},
	[STORE_KIND_ALLOC] = {STORE_KIND_ALLOC, "alloc", STORE_COUNTER, STORE_OBJECTS, STORE_BYTES, STORE_BYTES, "alloc_objects", "alloc_space",
		STORE_KIND_INUSE, true, "memory allocated", {"allocated", "began to allocate", "allocated before"},
		.family = "goheap"},
	[STORE_KIND_INUSE] = {STORE_KIND_INUSE, "inuse", STORE_GAUGE, STORE_OBJECTS, STORE_BYTES, STORE_BYTES, "inuse_objects", "inuse_space",
		STORE_KIND_ALLOC, true, "memory in use", {"held", "began to hold", "held before"},
		.family = "goheap", .push = "memory"},
	[STORE_KIND_MUTEX] = {STORE_KIND_MUTEX, "mutex", STORE_COUNTER, STORE_EVENTS, STORE_TIME, STORE_TIME, "contentions", "delay",
		0, false, "time that locks were waited for", {"waited for locks", "began to wait for locks:", "waited for locks before:"}, .counted = "contentions",
		.push = "mutex"},
	[STORE_KIND_BLOCK] = {STORE_KIND_BLOCK, "block", STORE_COUNTER, STORE_EVENTS, STORE_TIME, STORE_TIME, "contentions", "delay",
		0, false, "time blocked, as the runtime counts it", {"was blocked for", "began to be blocked for", "was blocked before for"}, .counted = "waits",
		.push = "block"},
	[STORE_KIND_STANDING] = {STORE_KIND_STANDING, "standing", STORE_GAUGE, STORE_EVENTS, STORE_TIME, STORE_TIME, "threads", "delay",
		0, false, "time that threads had been waiting for", {"had been waiting for", "had begun to wait:", "had been waiting before for"}, .counted = "threads",
		.family = "offcpu"},
	[STORE_KIND_GOROUTINE] = {STORE_KIND_GOROUTINE, "goroutine", STORE_GAUGE, STORE_OBJECTS, STORE_OBJECTS, STORE_OBJECTS, "goroutine", "goroutine",
		0, false, "goroutines", {"had", "began to have", "had before"}, .counted = "goroutines",
		.family = "scrape", .push = "goroutine"},
	[STORE_KIND_THREADCREATE] = {STORE_KIND_THREADCREATE, "threadcreate", STORE_COUNTER, STORE_OBJECTS, STORE_OBJECTS, STORE_OBJECTS, "threadcreate", "threadcreate",
		0, false, "threads created", {"created", "began to create", "created before"}, .counted = "threads",
		.push = "threadcreate"},
	[STORE_KIND_GOCPU] = {STORE_KIND_GOCPU, "gocpu", STORE_COUNTER, STORE_SAMPLES, STORE_TIME, STORE_TIME, "samples", "cpu",
		0, false, "time on CPU, by Go's own profile", {"used", "began to use", "used before"},
		.family = "scrape", .own = true, .push = "gocpu"},
	[STORE_KIND_GOALLOC] = {STORE_KIND_GOALLOC, "goalloc", STORE_COUNTER, STORE_OBJECTS, STORE_BYTES, STORE_BYTES, "alloc_objects", "alloc_space",
		STORE_KIND_GOINUSE, false, "memory allocated, by Go's own profile", {"allocated", "began to allocate", "allocated before"},
		.family = "scrape", .own = true},
	[STORE_KIND_GOINUSE] = {STORE_KIND_GOINUSE, "goinuse", STORE_GAUGE, STORE_OBJECTS, STORE_BYTES, STORE_BYTES, "inuse_objects", "inuse_space",
		STORE_KIND_GOALLOC, false, "memory in use, by Go's own profile", {"held", "began to hold", "held before"},
		.family = "scrape", .own = true, .push = "gomemory"},
	[STORE_KIND_GOBLOCK] = {STORE_KIND_GOBLOCK, "goblock", STORE_COUNTER, STORE_EVENTS, STORE_TIME, STORE_TIME, "contentions", "delay",
		0, false, "time blocked, by Go's own profile", {"was blocked for", "began to be blocked for", "was blocked before for"}, .counted = "waits",
		.family = "scrape", .own = true, .push = "goblock"},
	[STORE_KIND_GOMUTEX] = {STORE_KIND_GOMUTEX, "gomutex", STORE_COUNTER, STORE_EVENTS, STORE_TIME, STORE_TIME, "contentions", "delay",
		0, false, "time that locks were waited for, by Go's own profile", {"waited for locks", "began to wait for locks:", "waited for locks before:"}, .counted = "contentions",
		.family = "scrape", .own = true, .push = "gomutex"},
	[STORE_KIND_WALLCLOCK] = {STORE_KIND_WALLCLOCK, "wallclock", STORE_COUNTER, STORE_SAMPLES, STORE_TIME, STORE_TIME, "samples", "wall",
		0, false, "time on the clock, running or waiting", {"took", "began to take", "took before"}},
	[STORE_KIND_EXCEPTION] = {STORE_KIND_EXCEPTION, "exception", STORE_COUNTER, STORE_EVENTS, STORE_EVENTS, STORE_EVENTS, "exceptions", "exceptions",
		0, false, "exceptions thrown", {"threw", "began to throw", "threw before"}, .counted = "exceptions"},
	[STORE_KIND_PAGEFAULTS] = {STORE_KIND_PAGEFAULTS, "pagefaults", STORE_COUNTER, STORE_EVENTS, STORE_BYTES, STORE_BYTES, "page_faults", "touched_space",
		STORE_KIND_MEM, false, "memory first touched", {"touched", "began to touch", "touched before"}, .counted = "page faults",
		.family = "mem"},
	[STORE_KIND_MEM] = {STORE_KIND_MEM, "mem", STORE_GAUGE, STORE_OBJECTS, STORE_BYTES, STORE_BYTES, "pages", "held_space",
		STORE_KIND_PAGEFAULTS, false, "memory of processes", {"held", "began to hold", "held before"}, .counted = "pages",
		.family = "mem", .push = "processmemory"},
	[STORE_KIND_MEMWAIT] = {STORE_KIND_MEMWAIT, "memwait", STORE_DURATION, STORE_EVENTS, STORE_TIME, STORE_TIME, "memory_waits", "memory_delay",
		0, false, "time that memory was waited for", {"waited for memory", "began to wait for memory:", "waited for memory before:"}, .counted = "waits",
		.family = "mem"},
	[STORE_KIND_PROBE] = {STORE_KIND_PROBE, "probe", STORE_COUNTER, STORE_EVENTS, STORE_EVENTS, STORE_EVENTS, "hits", "hits",
		0, false, "hits of probes", {"hit probes", "began to hit probes:", "hit probes before:"}, .counted = "hits",
		.family = "probe"},
	[STORE_KIND_PROBETIME] = {STORE_KIND_PROBETIME, "probetime", STORE_DURATION, STORE_EVENTS, STORE_TIME, STORE_TIME, "calls", "call_time",
		0, false, "time in system calls with probes", {"took in system calls", "began to take in system calls:", "took in system calls before:"}, .counted = "calls",
		.family = "probe"},
	[STORE_KIND_PAGES] = {STORE_KIND_PAGES, "pages", STORE_GAUGE, STORE_OBJECTS, STORE_BYTES, STORE_BYTES, "pages", "used_space",
		0, false, "pages in use, the kernel's too", {"held pages:", "began to hold pages:", "held pages before:"}, .counted = "pages",
		.family = "mem", .option = "--pages"},
	[STORE_KIND_JAVAALLOC] = {STORE_KIND_JAVAALLOC, "java-alloc", STORE_COUNTER, STORE_SAMPLES, STORE_BYTES, STORE_BYTES, "alloc_samples", "alloc_space",
		0, false, "memory that Java allocated, estimated from samples", {"allocated", "began to allocate", "allocated before"},
		.family = "java", .push = "javaalloc"},
	[STORE_KIND_JAVALOCK] = {STORE_KIND_JAVALOCK, "java-lock", STORE_DURATION, STORE_EVENTS, STORE_TIME, STORE_TIME, "contentions", "delay",
		0, false, "time that Java monitors were waited for", {"waited for monitors", "began to wait for monitors:", "waited for monitors before:"}, .counted = "contentions",
		.family = "java", .push = "javalock"},
	[STORE_KIND_JAVAPARK] = {STORE_KIND_JAVAPARK, "java-park", STORE_DURATION, STORE_EVENTS, STORE_TIME, STORE_TIME, "parks", "park_delay",
		0, false, "time that Java threads were parked or waited to be notified", {"was parked for", "began to be parked for", "was parked before for"}, .counted = "parks",
		.family = "java"},
	[STORE_KIND_JAVAEXCEPTION] = {STORE_KIND_JAVAEXCEPTION, "java-exception", STORE_COUNTER, STORE_EVENTS, STORE_EVENTS, STORE_EVENTS, "exceptions", "exceptions",
		0, false, "exceptions that Java code made", {"threw", "began to throw", "threw before"}, .counted = "exceptions",
		.family = "java"},
	[STORE_KIND_MAJORFAULTS] = {STORE_KIND_MAJORFAULTS, "majorfaults", STORE_COUNTER, STORE_EVENTS, STORE_EVENTS, STORE_EVENTS, "major_faults", "major_faults",
		0, false, "page faults that read a file or swap", {"met page faults that read:", "began to meet page faults that read:", "met page faults that read before:"}, .counted = "major faults",
		.family = "mem"},
};
/* clang-format on */

const struct store_kind_info *store_kind_info(enum store_kind kind)
{
	return kind > 0 && kind < STORE_KINDS ? &kinds[kind] : NULL;
}

const struct store_kind_info *store_kind_named(const char *name)
{
	for (int i = 1; i < STORE_KINDS; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

const char *store_kind_counted(const struct store_kind_info *kind)
{
	return kind->counted ? kind->counted : store_unit_name(kind->unit_n);
}

const char *store_unit_name(enum store_unit u)
{
	static const char *const names[] = {[STORE_SAMPLES] = "samples",
					    [STORE_EVENTS] = "events",
					    [STORE_OBJECTS] = "objects",
					    [STORE_TIME] = "ns",
					    [STORE_BYTES] = "bytes"};

	return (unsigned)u < ARRAY_SIZE(names) ? names[u] : "";
}
