/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_kind: which sample types are accepted and which are refused. The names are those that
 * Go 1.26, gperftools by `go tool pprof -proto`, perf_to_profile, and sonde's own exports write. */
#include <string.h>

#include "tests/unit/test.h"
#include "tools/formats/pprof_kind.h"

static const struct pprof_type GO_HEAP[] = {{"alloc_objects", "count"},
					    {"alloc_space", "bytes"},
					    {"inuse_objects", "count"},
					    {"inuse_space", "bytes"}},
			       INUSE[] = {{"inuse_space", "bytes"}}, SPACE[] = {{"space", "bytes"}},
			       GO_CPU[] = {{"samples", "count"}, {"cpu", "nanoseconds"}},
			       GO_COUNT[] = {{"goroutine", "count"}},
			       GO_LEAK[] = {{"goroutineleak", "count"}},
			       GO_THREADS[] = {{"threadcreate", "count"}},
			       GO_LOCKS[] = {{"contentions", "count"}, {"delay", "nanoseconds"}},
			       JAVA_LOCKS[] = {{"contentions", "count"}, {"delay", "microseconds"}},
			       WAITS[] = {{"events", "count"}, {"delay", "nanoseconds"}},
			       STANDING[] = {{"threads", "count"}, {"delay", "nanoseconds"}},
			       OLD_HEAP[] = {{"objects", "count"}, {"space", "bytes"}},
			       WALL[] = {{"sample", "count"}, {"wall", "microseconds"}},
			       SAMPLES[] = {{"samples", "count"}},
			       THROWN[] = {{"exceptions", "count"}},
			       PERF[] = {{"cycles_sample", "count"}, {"cycles_event", "count"}},
			       OWN[] = {{"example.com/handles", "count"}};

#define NAMES(t, ...)                \
	filled((struct pprof_names){ \
		.types = t, .n_types = sizeof(t) / sizeof((t)[0]), ##__VA_ARGS__})

static struct pprof_names filled(struct pprof_names p)
{
	if (!p.default_type)
		p.default_type = "";
	if (!p.comment)
		p.comment = "";
	if (!p.period_type.type)
		p.period_type = (struct pprof_type){"", ""};
	return p;
}

static struct pprof_kind taken(struct pprof_names p, enum store_kind asked)
{
	struct pprof_kind k = {0};
	struct err e = {0};

	if (pprof_kind_choose(&p, asked, "x.pb.gz", &k, &e))
		fail_msg("%s", e.what);
	return k;
}

static void refused(struct pprof_names p, enum store_kind asked, const char *what, const char *fix)
{
	struct pprof_kind k;
	struct err e = {0};

	assert_int_not_equal(pprof_kind_choose(&p, asked, "x.pb.gz", &k, &e), 0);
	assert_int_equal(e.exit, EXIT_USAGE);
	if (!strstr(e.what, what) || !strstr(e.fix, fix))
		fail_msg("%s / %s", e.what, e.fix);
}

TEST(a_heap_profile_is_memory_in_use_and_allocated_where_it_says_so)
{
	struct pprof_kind k =
		taken(NAMES(GO_HEAP, .period_type = {"space", "bytes"}, .period = 524288), 0);

	assert_int_equal(k.kind->kind, STORE_KIND_INUSE);
	assert_int_equal(k.value, 3);
	assert_int_equal(k.count, 2);
	assert_int_equal(k.period, 524288);
	assert_true(k.timed);
	k = taken(NAMES(GO_HEAP, .default_type = "alloc_space"), 0);
	assert_int_equal(k.kind->kind, STORE_KIND_ALLOC);
	assert_int_equal(k.value, 1);
	assert_int_equal(taken(NAMES(GO_HEAP, .default_type = "inuse_objects"), 0).kind->kind,
			 STORE_KIND_INUSE);
	assert_int_equal(taken(NAMES(GO_HEAP), STORE_KIND_ALLOC).value, 1);
	refused(NAMES(GO_HEAP), STORE_KIND_MUTEX, "no values of --type mutex", "without --type");
	refused(NAMES(GO_HEAP), STORE_KIND_CPU, "no values of --type cpu", "without --type");
}

TEST(bytes_of_a_heap_need_no_objects)
{
	struct pprof_kind k =
		taken(NAMES(INUSE, .period_type = {"space", "bytes"}, .period = 524288), 0);

	assert_int_equal(k.kind->kind, STORE_KIND_INUSE);
	assert_int_equal(k.value, 0);
	assert_true(k.count == SIZE_MAX);
	refused(NAMES(INUSE), STORE_KIND_ALLOC, "no values of --type alloc", "without --type");
	refused(NAMES(SPACE), 0, "which may be", "--type alloc    --type inuse");
	assert_int_equal(taken(NAMES(SPACE), STORE_KIND_ALLOC).value, 0);
}

TEST(counts_of_goroutines_and_threads_are_no_cpu_time)
{
	struct pprof_kind k =
		taken(NAMES(GO_COUNT, .period_type = {"goroutine", "count"}, .period = 1), 0);

	assert_int_equal(k.kind->kind, STORE_KIND_GOROUTINE);
	assert_int_equal(k.value, 0);
	assert_int_equal(k.count, 0);
	assert_int_equal(k.period, 0);
	assert_int_equal(taken(NAMES(GO_LEAK), 0).kind->kind, STORE_KIND_GOROUTINE);
	assert_int_equal(taken(NAMES(GO_THREADS), 0).kind->kind, STORE_KIND_THREADCREATE);
	refused(NAMES(OWN), 0, "example.com/handles (count)", "go tool pprof -top");
}

TEST(cpu_time_has_several_forms)
{
	struct pprof_kind k =
		taken(NAMES(GO_CPU, .period_type = {"cpu", "nanoseconds"}, .period = 10000000), 0);

	assert_int_equal(k.kind->kind, STORE_KIND_CPU);
	assert_int_equal(k.value, 1);
	assert_int_equal(k.count, 0);
	assert_int_equal(k.period, 10000000);
	k = taken(NAMES(SAMPLES, .period_type = {"cpu", "milliseconds"}, .period = 10), 0);
	assert_true(k.timed && k.scale == 1e7);
	assert_int_equal(k.period, 10000000);
	k = taken(NAMES(SAMPLES, .period_type = {"cycles", "count"}, .period = 1000), 0);
	assert_false(k.timed);
	assert_int_equal(k.period, 0);
	k = taken(NAMES(PERF), 0);
	assert_false(k.timed);
	assert_int_equal(k.value, 0);
	assert_int_equal(taken(NAMES(WALL), 0).kind->kind, STORE_KIND_WALLCLOCK);
	k = taken(NAMES(WALL), STORE_KIND_CPU);
	assert_true(k.timed && k.scale == 1e3);
	assert_int_equal(k.value, 1);
}

TEST(what_may_be_two_kinds_is_told_apart_or_asked)
{
	static const char *const unlocks[] = {"sync.(*Mutex).Unlock", "sync.(*RWMutex).RUnlock",
					      "runtime.unlock", "internal/sync.(*Mutex).Unlock",
					      "runtime._LostContendedRuntimeLock"},
				 *const waits[] = {"sync.(*Mutex).Lock", "runtime.chanrecv1",
						   "runtime.selectgo"},
				 *const both[] = {"sync.(*Mutex).Lock", "sync.(*Mutex).Unlock"},
				 *const java[] = {"java.lang.Object.wait"};
	const struct pprof_type period = {"contentions", "count"};
	struct pprof_kind k = taken(NAMES(GO_LOCKS, .leaves = unlocks, .n_leaves = 5,
					  .period_type = period, .period = 1),
				    0);

	assert_int_equal(k.kind->kind, STORE_KIND_MUTEX);
	assert_true(k.scale == 1);
	assert_int_equal(k.period, 0);
	assert_int_equal(taken(NAMES(GO_LOCKS, .leaves = waits, .n_leaves = 3), 0).kind->kind,
			 STORE_KIND_BLOCK);
	refused(NAMES(GO_LOCKS, .leaves = both, .n_leaves = 2), 0, "does not say which",
		"--type mutex    --type block    --type java-lock");
	refused(NAMES(JAVA_LOCKS, .leaves = java, .n_leaves = 1), 0, "does not say which",
		"--type block");
	refused(NAMES(GO_LOCKS), 0, "does not say which", "--type mutex");
	k = taken(NAMES(JAVA_LOCKS), STORE_KIND_BLOCK);
	assert_true(k.kind->kind == STORE_KIND_BLOCK && k.scale == 1e3);
	k = taken(NAMES(THROWN), 0);
	assert_int_equal(k.kind->kind, STORE_KIND_EXCEPTION);
	refused(NAMES(OLD_HEAP), 0, "objects (count), space (bytes)",
		"--type alloc    --type inuse");
	assert_int_equal(taken(NAMES(OLD_HEAP), STORE_KIND_INUSE).value, 1);
}

TEST(what_sonde_wrote_says_which_it_is)
{
	assert_int_equal(
		taken(NAMES(THROWN, .comment = "sonde java-exception profile of vm, kernel 6"), 0)
			.kind->kind,
		STORE_KIND_JAVAEXCEPTION);
	assert_int_equal(taken(NAMES(WAITS, .comment = "sonde runqueue profile of vm, kernel 6"), 0)
				 .kind->kind,
			 STORE_KIND_RUNQUEUE);
	assert_int_equal(taken(NAMES(WAITS, .comment = "sonde offcpu profile of vm, kernel 6"), 0)
				 .kind->kind,
			 STORE_KIND_OFFCPU);
	assert_int_equal(taken(NAMES(GO_LOCKS, .comment = "sonde mutex profile of vm, kernel 6"), 0)
				 .kind->kind,
			 STORE_KIND_MUTEX);
	assert_int_equal(taken(NAMES(STANDING), 0).kind->kind, STORE_KIND_STANDING);
	refused(NAMES(WAITS), 0, "does not say which", "--type offcpu    --type runqueue");
}

TEST(a_profile_without_a_type_is_none)
{
	struct pprof_names p = {.default_type = "", .comment = "", .period_type = {"", ""}};

	refused(p, 0, "no sample type", "");
	refused(p, STORE_KIND_CPU, "no sample type", "");
}
