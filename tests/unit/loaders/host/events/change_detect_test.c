/* SPDX-License-Identifier: Apache-2.0 */
/* Changes from one reading to the next: throttling, full file systems, limits; starts and stops of
 * containers; the kernel's log. */
#include <string.h>

#include "loaders/host/events/container_life.h"
#include "loaders/host/events/oomlog.h"
#include "loaders/host/events/change_detect.h"
#include "schema/base/clock.h"
#include "schema/facts/host.h"
#include "tests/unit/test.h"

/* --- readings --- */

TEST(throttling_begins_in_a_tenth_of_the_periods_and_ends_after_three_quiet_readings)
{
	struct change_throttle w = {0};

	assert_int_equal(change_throttle(&w, 1000, 900),
			 CHANGE_SAME); /* of before it was looked at */
	assert_int_equal(change_throttle(&w, 1100, 904), CHANGE_SAME); /* four are too few */
	assert_int_equal(change_throttle(&w, 1200, 914), CHANGE_BEGAN);
	assert_int_equal(change_throttle(&w, 1300, 1000), CHANGE_SAME);
	assert_int_equal(change_throttle(&w, 1400, 1001), CHANGE_SAME);
	assert_int_equal(change_throttle(&w, 1400, 1001), CHANGE_SAME);
	assert_int_equal(change_throttle(&w, 1500, 1050),
			 CHANGE_SAME); /* again: the quiet is over */
	assert_int_equal(change_throttle(&w, 1600, 1050), CHANGE_SAME);
	assert_int_equal(change_throttle(&w, 1700, 1050), CHANGE_SAME);
	assert_int_equal(change_throttle(&w, 1800, 1050), CHANGE_ENDED);
	assert_int_equal(change_throttle(&w, 1900, 1050), CHANGE_SAME);
}

TEST(counters_that_begin_anew_are_no_throttling)
{
	struct change_throttle w = {0};

	change_throttle(&w, 1000, 900);
	assert_int_equal(change_throttle(&w, 50, 50), CHANGE_SAME);
}

TEST(a_file_system_is_full_below_a_hundredth_until_there_is_a_fiftieth)
{
	struct change_level full = {0};

	assert_true(change_full(1000, 9, false));
	assert_false(change_full(1000, 10, false));
	assert_true(change_full(1000, 19, true));
	assert_false(change_full(1000, 20, true));
	assert_false(change_full(0, 0, false));                   /* it has no limit of inodes */
	assert_int_equal(change_level(&full, true), CHANGE_SAME); /* it was full before */
	assert_int_equal(change_level(&full, false), CHANGE_ENDED);
	assert_int_equal(change_level(&full, true), CHANGE_BEGAN);
}

TEST(limits_that_change_are_said_but_not_those_of_a_cgroup_that_is_being_made)
{
	struct change_limits w = {0};
	struct fact_row row = {0};
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	assert_false(change_limits(&w, &row, &text));
	fact_put(&row, CGROUP_MEM_LIMIT, 64 << 20);
	assert_false(change_limits(&w, &row, &text)); /* its runtime sets it */
	assert_false(change_limits(&w, &row, &text));
	fact_put(&row, CGROUP_MEM_LIMIT, 128 << 20);
	fact_put(&row, CGROUP_CPU_LIMIT, 500);
	assert_true(change_limits(&w, &row, &text));
	assert_string_equal(strbuf_str(&text), "CPU 0.50, was none; memory 128 MiB, was 64 MiB");
	strbuf_reset(&text);
	assert_false(change_limits(&w, &row, &text));
}

/* --- containers --- */

#define PATH_A "/docker/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

#define NOW (CONTAINER_LIFE_WAY_IN_NS + 10000) /* all of these began long ago */

static struct container_life_event told[16];
static size_t n_told;

static void tell(void *ctx, const struct container_life_event *e)
{
	(void)ctx;
	assert_true(n_told < 16);
	told[n_told++] = *e;
}

static struct hostmaps_process process(uint32_t pid, uint32_t nspid, uint64_t start_ns)
{
	return (struct hostmaps_process){.tgid = pid,
					 .nspid = nspid,
					 .start_ns = start_ns,
					 .to_ns = UINT64_MAX,
					 .comm = "app",
					 .exe = "",
					 .args = "",
					 .cgroup = PATH_A};
}

static void ends(struct container_life *l, struct hostmaps_process p, uint64_t at_ns, int status)
{
	p.to_ns = at_ns;
	p.end = HOSTMAPS_ENDED;
	p.status = status;
	container_life_ended(l, &p);
}

static int begin(void **state)
{
	(void)state;
	n_told = 0;
	return 0;
}

TEST_WITH(what_ran_before_the_first_look_has_not_started_and_its_stop_is_told, begin, NULL)
{
	struct container_life l = {.tell = tell};
	struct hostmaps_process first = process(10, 1, 100);

	container_life_meet(&l, &first);
	container_life_round(&l, NOW);
	assert_int_equal(n_told, 0);
	ends(&l, first, 500, 1 << 8);
	assert_int_equal(n_told, 1);
	assert_true(told[0].stopped);
	assert_int_equal(told[0].status, 1 << 8);
	assert_int_equal(told[0].boot_ns, 500);
	container_life_release(&l);
}

TEST_WITH(one_that_comes_and_goes_between_two_looks_started_and_stopped, begin, NULL)
{
	struct container_life l = {.tell = tell};

	container_life_round(&l, 50);
	for (uint64_t i = 1; i <= 3; i++)
		ends(&l, process(10 + (uint32_t)i, 1, 1000 * i), 1000 * i + 10, 9);
	container_life_round(&l, NOW);
	assert_int_equal(n_told, 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(told[i].stopped, i % 2);
	assert_int_equal(told[0].starts, 1);
	assert_int_equal(told[4].starts, 3);
	container_life_release(&l);
}

TEST_WITH(a_first_process_of_a_namespace_inside_is_not_the_containers, begin, NULL)
{
	struct container_life l = {.tell = tell};
	struct hostmaps_process first = process(10, 1, 100), inner = process(20, 1, 200);

	container_life_round(&l, 50);
	container_life_meet(&l, &inner);
	container_life_meet(&l, &first);
	container_life_round(&l, NOW);
	assert_int_equal(n_told, 1);
	assert_int_equal(told[0].leader.tgid, 10);
	ends(&l, inner, 300, 0);
	assert_int_equal(n_told, 1);
	ends(&l, first, 400, 0);
	assert_int_equal(n_told, 2);
	container_life_release(&l);
}

TEST_WITH(with_the_hosts_pid_namespace_it_has_stopped_once_nothing_runs_in_it, begin, NULL)
{
	struct container_life l = {.tell = tell};
	struct hostmaps_process first = process(10, 10, 100), second = process(11, 11, 150),
				anew = process(12, 12, 900);

	container_life_round(&l, 50);
	container_life_meet(&l, &second);
	container_life_meet(&l, &first);
	container_life_round(&l, NOW);
	assert_int_equal(n_told, 1);
	ends(&l, first, 300, 3 << 8);
	container_life_meet(&l, &second);
	container_life_round(&l, NOW);
	assert_int_equal(n_told, 1); /* the second runs on */
	ends(&l, second, 400, 0);
	container_life_round(&l, NOW);
	assert_int_equal(n_told, 2);
	assert_true(told[1].stopped);
	assert_int_equal(told[1].status, 3 << 8);
	container_life_meet(&l, &anew);
	container_life_round(&l, NOW);
	assert_int_equal(n_told, 3);
	assert_int_equal(told[2].starts, 2);
	container_life_release(&l);
}

/* The runtime's own processes are in the cgroup before the first process of the namespace, and a
 * reading may find them there. */
TEST_WITH(stops_a_few_milliseconds_apart_are_each_told_though_a_look_falls_on_the_runtime, begin,
	  NULL)
{
	struct container_life l = {.tell = tell};
	uint64_t t = NSEC_PER_SEC;

	container_life_round(&l, 50);
	for (uint32_t i = 0; i < 4; i++, t += 5000000) {
		struct hostmaps_process runtime = process(100 + i, 100 + i, t),
					first = process(200 + i, 1, t + 1000000);

		container_life_meet(&l, &runtime);
		container_life_round(&l, t + 500000);
		ends(&l, first, t + 2000000, (int)(i + 1) << 8);
		ends(&l, runtime, t + 3000000, 0);
	}
	container_life_round(&l, t);
	assert_int_equal(n_told, 8);
	for (size_t i = 0; i < 4; i++) {
		assert_false(told[2 * i].stopped);
		assert_int_equal(told[2 * i].leader.tgid, 200 + i);
		assert_true(told[2 * i + 1].stopped);
		assert_int_equal(told[2 * i + 1].status, (int)(i + 1) << 8);
	}
	container_life_release(&l);
}

/* runc's first child ends while the container runs on: its exit status is not the container's. */
TEST_WITH(the_way_in_is_no_leader_however_it_ends, begin, NULL)
{
	struct container_life l = {.tell = tell};
	struct hostmaps_process way = process(100, 100, NSEC_PER_SEC),
				first = process(101, 1, NSEC_PER_SEC + 100);

	container_life_round(&l, 50);
	container_life_meet(&l, &way);
	container_life_round(&l, NSEC_PER_SEC + 50);
	ends(&l, way, NSEC_PER_SEC + 200, 0);
	container_life_meet(&l, &first);
	container_life_round(&l, 2 * NSEC_PER_SEC);
	assert_int_equal(n_told, 1);
	assert_int_equal(told[0].leader.tgid, 101);
	ends(&l, first, 3 * NSEC_PER_SEC, 7 << 8);
	assert_int_equal(n_told, 2);
	assert_int_equal(told[1].status, 7 << 8);
	container_life_release(&l);
}

/* On a slow host this takes seconds: the name "runc" identifies the process. */
TEST_WITH(a_runtime_that_takes_its_time_is_no_leader_either, begin, NULL)
{
	struct container_life l = {.tell = tell};
	struct hostmaps_process way = process(100, 100, NSEC_PER_SEC),
				first = process(101, 1, 2 * NSEC_PER_SEC);

	way.comm = "runc:[0:PARENT]";
	container_life_round(&l, 50);
	container_life_meet(&l, &way);
	container_life_round(&l, 9 * NSEC_PER_SEC);
	ends(&l, way, 10 * NSEC_PER_SEC, 0);
	container_life_round(&l, 11 * NSEC_PER_SEC);
	assert_int_equal(n_told, 0);
	ends(&l, first, 12 * NSEC_PER_SEC, 9);
	assert_int_equal(n_told, 2);
	assert_int_equal(told[1].status, 9);
	container_life_release(&l);
}

/* --- the kernel's log --- */

#define HEAD_NEW \
	"[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name\n"
#define HEAD_OLD \
	"[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n"
#define LIMIT \
	"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/docker/x,task_memcg=/docker/x/y,task=tail,pid=77,uid=0\n"
#define KILLED(pid)                                        \
	"Memory cgroup out of memory: Killed process " pid \
	" (a tail) total-vm:221356kB, anon-rss:32256kB, file-rss:6596kB, shmem-rss:4kB, UID:0\n"

static struct oomlog found;

static bool look(const char *log, uint32_t pid)
{
	memset(&found, 0, sizeof(found));
	return oomlog_find(log, strlen(log), pid, 4096, &found);
}

TEST(a_kill_at_a_limit_has_its_cgroup_limit_and_who_held_memory)
{
	assert_true(look(
		"<4>[ 1660.347558] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
		"<6>[ 1660.347559] memory: usage 65536kB, limit 65536kB, failcnt 25\n"
		"<6>[ 1660.347564] " HEAD_NEW
		"<6>[ 1660.347566] [  10925]     0 10925      740      436        0      436         0    45056        7             0 un share\n"
		"<6>[ 1660.347570] [     77]     0    77    55339     9713     8064     1649         0   143360        0             0 tail\n"
		"<6>[ 1660.347573] " LIMIT "<3>[ 1660.347600] " KILLED("77"),
		77));
	assert_string_equal(found.asked_by, "python3");
	assert_string_equal(found.cgroup, "/docker/x");
	assert_string_equal(found.victim_cgroup, "/docker/x/y");
	assert_string_equal(found.comm, "a tail");
	assert_true(found.is_told && found.has_limit && found.has_sizes);
	assert_int_equal(found.limit_bytes, 64 << 20);
	assert_int_equal(found.anon_bytes, 32256 << 10);
	assert_int_equal(found.n_tasks, 2);
	assert_string_equal(found.tasks[0].comm, "tail");
	assert_int_equal(found.tasks[0].rss_bytes, 9713 * 4096);
	assert_string_equal(found.tasks[1].comm, "un share");
	assert_int_equal(found.tasks[1].swap_bytes, 7 * 4096);
}

TEST(an_older_kernels_list_is_read_by_its_own_head)
{
	assert_true(look(
		"[    1.000001] " HEAD_OLD
		"[    1.000002] [      5]     0     5    17000    16000   180224        3             0 five\n"
		"[    1.000003] " KILLED("5"),
		5));
	assert_int_equal(found.tasks[0].rss_bytes, 16000 * 4096);
	assert_int_equal(found.tasks[0].swap_bytes, 3 * 4096);
	assert_false(found.is_told);
}

TEST(of_several_kills_of_a_pid_the_last_one_counts_and_none_has_anothers_lines)
{
	assert_true(
		look("memory: usage 1kB, limit 8kB, failcnt 1\n" KILLED("77") KILLED(
			     "78") "memory: usage 2kB, limit 16kB, failcnt 1\n" LIMIT KILLED("77"),
		     77));
	assert_int_equal(found.limit_bytes, 16 << 10);
	assert_true(
		look("memory: usage 1kB, limit 8kB, failcnt 1\n" KILLED("77") KILLED("78"), 78));
	assert_false(found.has_limit);
	assert_false(look(KILLED("77"), 7));
	assert_false(look("", 7));
}
