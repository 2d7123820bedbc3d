/* SPDX-License-Identifier: Apache-2.0 */
/* drain: readings of sums that only grow, of threads that come, change and go. */
#include <string.h>

#include "loaders/offcpu/drain.h"
#include "loaders/offcpu/rest.h"
#include "tests/unit/loaders/offcpu/fakes.h"
#include "tests/unit/test.h"

#define SECOND   1000000000ll
#define ID(tid_) ((uint64_t)(tid_) << 40 | 7)

static struct drain d;
static struct rest rest;
static struct family_host host;
static uint32_t reading;

static int begin(void **state)
{
	const struct drain_maps maps = {FAKE_THREADS,   FAKE_WHO,  FAKE_TOTALS,     FAKE_WAKES,
					FAKE_CULPRITS,  FAKE_FREE, FAKE_FREE_STEPS, FAKE_FREE_WAKES,
					fake.sums,      FAKES,     fake.steps,      FAKES,
					fake.wake_sums, FAKES,     &fake.wake_turn, &rest};

	(void)state;
	fakes_reset(&host);
	reading = 0;
	rest = (struct rest){
		.fd = FAKE_RESTS, .made = &fake.rests_made, .at_end = true, .said = true};
	drain_init(&d, &maps, SECOND);
	return 0;
}

static int end(void **state)
{
	(void)state;
	drain_release(&d);
	return 0;
}

static void thread_put(uint32_t tid)
{
	struct offcpu_who who = {.task = tid, .tgid = 5, .tid = tid, .comm = "worker"};
	struct offcpu_thread t = {.id = ID(tid), .tgid = 5, .tid = tid, .in_scope = 1};
	uint64_t id = ID(tid), task = tid;

	fake_map_put(FAKE_WHO, &id, sizeof(id), &who, sizeof(who));
	fake_map_put(FAKE_THREADS, &task, sizeof(task), &t, sizeof(t));
}

static void thread_ends(uint32_t tid)
{
	extern int bpf_map_delete_elem(int fd, const void *key);
	uint64_t task = tid;

	bpf_map_delete_elem(FAKE_THREADS, &task);
}

static void sum_put(uint32_t tid, uint32_t class, uint64_t n, uint64_t ns, uint64_t max)
{
	struct offcpu_key key = {.id = ID(tid), .class = class};
	struct offcpu_sum *sum = &fake.sums[tid];
	uint32_t slot = tid;

	sum->n = n;
	sum->total_ns = ns;
	sum->max_ns[reading & 1] = max;
	sum->reading[reading & 1] = reading;
	sum->power[10] = 1 + tid;
	fake.steps[tid].n[3] = (uint32_t)n;
	fake_map_put(FAKE_TOTALS, &key, sizeof(key), &slot, sizeof(slot));
}

static void read_now(void)
{
	drain_read(&d, &host, reading, (reading + 2) * SECOND);
	reading++;
}

TEST_WITH(each_reading_stores_what_has_been_added_since, begin, end)
{
	thread_put(7);
	sum_put(7, OFFCPU_PIPE, 10, 5000, 900);
	read_now();
	assert_int_equal(fake.n_waits, 1);
	assert_int_equal(fake.waits[0].task, 7);
	assert_int_equal(fake.waits[0].x.n, 10);
	assert_int_equal(fake.waits[0].x.max_ns, 900);
	assert_int_equal(fake.waits[0].utc_ns,
			 (SECOND + 2 * SECOND) / 2 + 1000); /* in the middle of what it is about */
	read_now();
	assert_int_equal(fake.n_waits, 1);
	sum_put(7, OFFCPU_PIPE, 13, 5600, 300);
	read_now();
	assert_int_equal(fake.waits[1].x.n, 3);
	assert_int_equal(fake.waits[1].x.total_ns, 600);
	assert_int_equal(fake.waits[1].x.max_ns, 300);
	assert_int_equal(host.added, 13);
}

TEST_WITH(how_long_waits_were_is_told_by_steps_since_the_last_reading, begin, end)
{
	thread_put(7);
	sum_put(7, OFFCPU_PIPE, 10, 5000, 900);
	fake.sums[7].power[9] = 40; /* [2^11, 2^12) ns */
	fake.steps[39].n[7] = 2;
	read_now();
	assert_string_equal(fake.waits[0].hist, "[143,2,0,0,0,10]"); /* HIST_FINE + 8 x 9 + 7 */
	sum_put(7, OFFCPU_PIPE, 13, 5600, 300);
	read_now();
	assert_string_equal(fake.waits[1].hist, "[147,3]");
}

TEST_WITH(waits_without_room_for_steps_are_told_by_powers_of_two, begin, end)
{
	thread_put(7);
	sum_put(7, OFFCPU_PIPE, 10, 5000, 900);
	fake.sums[7].power[10] = OFFCPU_COARSE | 10;
	read_now();
	assert_string_equal(fake.waits[0].hist, "[12,10]"); /* [2^12, 2^13) */
	sum_put(7, OFFCPU_PIPE, 12, 5600, 300);
	fake.sums[7].power[10] = OFFCPU_COARSE | 12;
	fake.sums[7].power[11] = FAKES + 1; /* no steps of the array */
	read_now();
	assert_string_equal(fake.waits[1].hist, "[12,2]");
}

TEST_WITH(what_was_longest_in_an_earlier_reading_is_not_told_again, begin, end)
{
	thread_put(7);
	sum_put(7, OFFCPU_PIPE, 10, 5000, 900);
	reading += 2; /* the program had counted on */
	read_now();
	assert_int_equal(fake.waits[0].x.max_ns, 0);
}

TEST_WITH(sums_of_who_is_not_known_yet_wait_for_the_next_reading, begin, end)
{
	sum_put(7, OFFCPU_PIPE, 10, 5000, 900);
	read_now();
	assert_int_equal(fake.n_waits, 0);
	thread_put(7);
	read_now();
	assert_int_equal(fake.n_waits, 1);
	assert_int_equal(fake.waits[0].x.n, 10);
}

TEST_WITH(a_thread_that_is_gone_is_read_to_its_last_and_then_forgotten_everywhere, begin, end)
{
	struct offcpu_wake_key wake = {.id = ID(7), .waker = ID(8), .class = OFFCPU_PIPE};
	struct offcpu_culprit_key culprit = {.id = ID(8), .by = ID(7)};
	struct offcpu_count count = {.n = 2, .total_ns = 200000};
	uint32_t slot = 5;

	thread_put(7);
	thread_put(8);
	sum_put(7, OFFCPU_PIPE, 10, 5000, 900);
	read_now();
	sum_put(7, OFFCPU_PIPE, 12, 6000, 900);
	fake.wake_sums[slot] = count;
	fake_map_put(FAKE_WAKES, &wake, sizeof(wake), &slot, sizeof(slot));
	fake_map_put(FAKE_CULPRITS, &culprit, sizeof(culprit), &count, sizeof(count));
	thread_ends(7);
	for (int i = 0; i < 4; i++)
		read_now();
	assert_int_equal(fake.n_waits, 2);
	assert_int_equal(fake.waits[1].x.n, 2);
	assert_int_equal(fake.n_wakes, 1);
	assert_int_equal(fake.wakes[0].x.waker, 8);
	assert_int_equal(fake.n_culprits, 1);
	assert_int_equal(fake.culprits[0].x.culprit, 7);
	assert_int_equal(
		fake.n_map[FAKE_TOTALS] + fake.n_map[FAKE_WAKES] + fake.n_map[FAKE_CULPRITS], 0);
	assert_int_equal(fake.n_map[FAKE_WHO], 1);
	assert_int_equal(d.sums.n + d.counts.n, 0);
	/* the slot of its sum is freed, cleared as at the start */
	assert_int_equal(fake.n_freed, 1);
	assert_true(fake.freed[0].first == 7 && fake.freed[0].n == 1);
	assert_true(fake.n_freed_steps == 1 && fake.freed_steps[0].first == 7 &&
		    fake.freed_steps[0].n == 1);
	assert_true(fake.n_freed_wakes == 1 && fake.freed_wakes[0].first == 5 &&
		    fake.freed_wakes[0].n == 1);
	assert_int_equal(fake.sums[7].n + fake.sums[7].power[10] + fake.steps[7].n[3] +
				 fake.wake_sums[5].n,
			 0);
	while (d.read_ns - 4 * SECOND < DRAIN_KEPT_NS) { /* gone since the third reading */
		assert_int_equal(drain_thread(&d, &host, ID(7)),
				 7); /* it ended a wait whose stack is unwound now */
		read_now();
	}
	assert_int_equal(drain_thread(&d, &host, ID(7)), 0);
	assert_int_equal(d.who.n, 1);
}

TEST_WITH(so_many_are_gone_that_not_all_are_known_any_more, begin, end)
{
	for (uint32_t tid = 1; tid <= DRAIN_KEPT_MOST + 40; tid++) {
		uint64_t id = ID(tid);

		if (tid > 10)
			fake.n_map[FAKE_WHO] = 0;
		thread_put(tid);
		thread_ends(tid);
		assert_int_equal(drain_thread(&d, &host, id), tid);
	}
	for (int i = 0; i < 3; i++)
		read_now();
	assert_int_equal(d.who.n, DRAIN_KEPT_MOST);
}

TEST_WITH(what_each_of_many_took_in_a_short_time_is_one_sum, begin, end)
{
	struct offcpu_culprit_key key = {.id = ID(7)};
	struct offcpu_count small = {.n = 3, .total_ns = 99999},
			    large = {.n = 1, .total_ns = 100000};

	thread_put(7);
	for (uint32_t tid = 8; tid < 12; tid++) {
		thread_put(tid);
		key.by = ID(tid);
		fake_map_put(FAKE_CULPRITS, &key, sizeof(key), tid == 9 ? &large : &small,
			     sizeof(small));
	}
	read_now();
	assert_int_equal(fake.n_culprits, 2);
	assert_true(fake.culprits[0].x.culprit == 9 && fake.culprits[0].x.total_ns == 100000);
	assert_int_equal(fake.culprits[1].x.kind, STORE_CULPRIT_UNKNOWN);
	assert_true(fake.culprits[1].x.n == 9 && fake.culprits[1].x.total_ns == 3 * 99999 &&
		    !fake.culprits[1].x.culprit);
	read_now();
	assert_int_equal(fake.n_culprits, 2);
}

/* Sums by stack stay complete: waits without a stack are stored without one, with their histogram,
 * in the kind that a stack would have had. */
TEST_WITH(a_wait_that_began_while_no_stacks_were_taken_stands_by_stack_too, begin, end)
{
	struct offcpu_key key = {
		.id = ID(7), .class = OFFCPU_PIPE, .flags = OFFCPU_F_STACKLESS | OFFCPU_F_IOWAIT};
	uint32_t slot = 3;

	thread_put(7);
	fake.sums[3] = (struct offcpu_sum){
		.n = 4, .total_ns = 4000, .max_ns = {1500}, .reading = {reading}};
	fake_map_put(FAKE_TOTALS, &key, sizeof(key), &slot, sizeof(slot));
	sum_put(7, OFFCPU_WOKEN, 10, 5000, 900); /* one whose wait may have had a stack */
	read_now();
	assert_int_equal(fake.n_waits, 2);
	assert_int_equal(fake.n_amounts, 1);
	assert_true(fake.amounts[0].kind == STORE_KIND_OFFCPU &&
		    fake.amounts[0].label == OFFCPU_PIPE && !fake.amounts[0].stack);
	assert_true(fake.amounts[0].n == 4 && fake.amounts[0].value == 4000 &&
		    fake.amounts[0].max == 1500);
	assert_int_equal(fake.waits[0].x.flags,
			 OFFCPU_F_IOWAIT); /* how it began is the loader's own affair */
	key.class = OFFCPU_PREEMPTED;
	key.flags = OFFCPU_F_STACKLESS;
	slot = 4;
	fake.sums[4] = (struct offcpu_sum){.n = 1, .total_ns = 70};
	fake_map_put(FAKE_TOTALS, &key, sizeof(key), &slot, sizeof(slot));
	key.flags |= OFFCPU_F_BEFORE; /* of those none has a stack, at any rate */
	slot = 5;
	fake.sums[5] = (struct offcpu_sum){.n = 1, .total_ns = 80};
	fake_map_put(FAKE_TOTALS, &key, sizeof(key), &slot, sizeof(slot));
	read_now();
	assert_int_equal(fake.n_amounts, 2);
	assert_true(fake.amounts[1].kind == STORE_KIND_RUNQUEUE && fake.amounts[1].value == 70);
	assert_int_equal(host.added, 4 + 4 + 10 + 1 + 1 + 1);
}

TEST_WITH(whom_nobody_knows_any_more_is_removed_in_the_end, begin, end)
{
	sum_put(9, OFFCPU_PIPE, 1, 5, 5);
	for (int i = 0; i < 8; i++)
		read_now();
	assert_int_equal(fake.n_map[FAKE_TOTALS], 0);
	assert_int_equal(fake.n_freed, 1);
	assert_int_equal(fake.n_waits, 1); /* nothing is lost */
	assert_int_equal(fake.waits[0].task, FAKE_TASK + FAKE_BRIEF);
	assert_int_equal(fake.waits[0].x.class, STORE_WAIT_PIPE);
	assert_int_equal(fake.waits[0].x.total_ns, 5);
	assert_int_equal(fake.n_amounts, 1); /* no stack stands for it */
	assert_int_equal(host.added, 2);
}

TEST_WITH(what_found_no_room_is_stored_by_class_as_what_has_been_added_since, begin, end)
{
	fake.rests[OFFCPU_LOCK] =
		(struct offcpu_rest){.n = 3, .total_ns = 900, .power = {1, [8] = 2}};
	fake.rests[OFFCPU_RUNNING] =
		(struct offcpu_rest){.n = 4, .total_ns = 50, .power = {[3] = 4}};
	fake.rests_made = 1;
	read_now();
	assert_int_equal(fake.n_waits, 2);
	assert_int_equal(fake.waits[0].task, FAKE_TASK + FAKE_BRIEF);
	assert_int_equal(fake.waits[0].x.n, 3);
	assert_int_equal(fake.waits[0].x.total_ns, 900);
	assert_string_equal(fake.waits[0].hist, "[2,1,0,0,0,0,0,2]");
	assert_int_equal(fake.waits[1].x.class, STORE_RUNNING);
	assert_int_equal(fake.n_amounts, 1); /* of what was waited */
	assert_int_equal(fake.amounts[0].value, 900);
	fake.rests[OFFCPU_LOCK].n = 9; /* not made: not looked at */
	read_now();
	assert_int_equal(fake.n_waits, 2);
	fake.rests[OFFCPU_LOCK] =
		(struct offcpu_rest){.n = 5, .total_ns = 1100, .power = {2, [8] = 3}};
	fake.rests_made = 1;
	read_now();
	assert_int_equal(fake.n_waits, 3);
	assert_int_equal(fake.waits[2].x.n, 2);
	assert_int_equal(fake.waits[2].x.total_ns, 200);
	assert_string_equal(fake.waits[2].hist, "[2,1,0,0,0,0,0,1]");
}

static void wake_put(uint32_t tid, uint32_t by, uint32_t slot, uint64_t n)
{
	struct offcpu_wake_key key = {.id = ID(tid), .waker = ID(by), .class = OFFCPU_PIPE};

	fake.wake_sums[slot] = (struct offcpu_count){.n = n, .total_ns = 10 * n};
	fake_map_put(FAKE_WAKES, &key, sizeof(key), &slot, sizeof(slot));
}

TEST_WITH(pairs_that_do_not_meet_any_more_make_room_where_half_of_it_is_taken, begin, end)
{
	thread_put(7);
	for (uint32_t by = 10; by < 10 + FAKES / 2; by++) {
		thread_put(by);
		wake_put(7, by, by - 10, 2);
	}
	read_now();
	read_now();
	assert_int_equal(fake.n_map[FAKE_WAKES], FAKES / 2); /* no more than half */
	assert_int_equal(fake.wake_turn, 0);
	thread_put(9);
	wake_put(7, 9, 40, 2);
	wake_put(7, 10, 0, 3); /* one of the others goes on */
	read_now();
	assert_int_equal(fake.n_map[FAKE_WAKES], 2);
	assert_int_equal(fake.wake_turn, 1);
	assert_int_equal(fake.n_freed_wakes, 0); /* a thread may still add to them */
	fake.wake_sums[11].n += 5;
	wake_put(7, 11, 41, 1); /* and the pair meets again */
	read_now();
	assert_int_equal(fake.n_freed_wakes, 1);
	assert_true(fake.freed_wakes[0].first == 1 && fake.freed_wakes[0].n == FAKES / 2 - 1);
	assert_int_equal(fake.wake_sums[11].n, 0);
	uint64_t n = 0;
	for (size_t i = 0; i < fake.n_wakes; i++)
		n += fake.wakes[i].x.n;
	assert_int_equal(n, 2 * FAKES / 2 + 2 + 1 + 5 + 1);
	assert_int_equal(d.pairs_lost, 0);
}

TEST_WITH(who_ran_meanwhile_is_taken_out_and_lost_where_nobody_knows_who_waited, begin, end)
{
	struct offcpu_culprit_key known = {.id = ID(7), .by = ID(9)},
				  unknown = {.id = ID(8), .by = ID(7)};
	struct offcpu_count count = {.n = 3, .total_ns = 500000};

	thread_put(7);
	fake_map_put(FAKE_CULPRITS, &known, sizeof(known), &count, sizeof(count));
	fake_map_put(FAKE_CULPRITS, &unknown, sizeof(unknown), &count, sizeof(count));
	read_now();
	assert_int_equal(fake.n_map[FAKE_CULPRITS], 0);
	assert_int_equal(d.pairs_lost, 3);
	assert_int_equal(fake.n_culprits, 1); /* its process is not known */
	assert_int_equal(fake.culprits[0].x.kind, STORE_CULPRIT_UNKNOWN);
	assert_int_equal(fake.culprits[0].x.total_ns, 500000);
	fake_map_put(FAKE_CULPRITS, &known, sizeof(known), &count, sizeof(count));
	read_now(); /* each entry is what came since */
	assert_int_equal(fake.n_culprits, 2);
	assert_int_equal(fake.culprits[1].x.n, 3);
}

TEST_WITH(a_slot_beyond_the_array_is_no_sum, begin, end)
{
	struct offcpu_key key = {.id = ID(7), .class = OFFCPU_PIPE};
	uint32_t slot = FAKES;

	thread_put(7);
	fake_map_put(FAKE_TOTALS, &key, sizeof(key), &slot, sizeof(slot));
	thread_ends(7);
	for (int i = 0; i < 4; i++)
		read_now();
	assert_int_equal(fake.n_waits + fake.n_freed, 0);
}

TEST_WITH(an_idle_cpu_and_an_unknown_culprit_are_no_threads, begin, end)
{
	struct offcpu_culprit_key idle = {.id = ID(7), .by = OFFCPU_BY_IDLE},
				  unknown = {.id = ID(7), .by = OFFCPU_BY_UNKNOWN};
	struct offcpu_count count = {.n = 1, .total_ns = 5};

	thread_put(7);
	fake_map_put(FAKE_CULPRITS, &idle, sizeof(idle), &count, sizeof(count));
	fake_map_put(FAKE_CULPRITS, &unknown, sizeof(unknown), &count, sizeof(count));
	read_now();
	assert_int_equal(fake.n_culprits, 2);
	assert_int_equal(fake.culprits[0].x.kind, STORE_CULPRIT_IDLE);
	assert_int_equal(fake.culprits[1].x.kind, STORE_CULPRIT_UNKNOWN);
	assert_int_equal(fake.culprits[0].x.culprit, 0);
}

TEST_WITH(a_store_in_a_new_epoch_is_asked_again_and_one_that_refuses_is_counted, begin, end)
{
	thread_put(7);
	fake.stale = 2;
	sum_put(7, OFFCPU_PIPE, 10, 5000, 900);
	read_now();
	assert_int_equal(fake.n_waits, 1);
	fake.stale = 9;
	sum_put(7, OFFCPU_PIPE, 14, 5000, 900);
	read_now();
	assert_int_equal(fake.n_waits, 1);
	assert_int_equal(host.refused, 4);
}

static void last_of(uint32_t tid, uint8_t state, uint64_t since, uint64_t woken, uint8_t in_scope)
{
	struct offcpu_thread t = {.id = ID(tid),
				  .tid = tid,
				  .since_ns = since,
				  .woken_ns = woken,
				  .state = state,
				  .class = OFFCPU_LOCK,
				  .flags = OFFCPU_F_BEFORE,
				  .in_scope = in_scope};
	uint64_t task = tid;

	thread_put(tid);
	fake_map_put(FAKE_THREADS, &task, sizeof(task), &t, sizeof(t));
}

TEST_WITH(what_still_lasts_is_told_up_to_the_end_and_apart, begin, end)
{
	last_of(7, OFFCPU_S_BLOCKED, SECOND, 0, 1);
	last_of(8, OFFCPU_S_BLOCKED, SECOND, 2 * SECOND, 1); /* woken, and not run yet */
	last_of(9, OFFCPU_S_RUNNING, 5 * SECOND, 0,
		1); /* since after the end: another CPU's clock */
	last_of(10, OFFCPU_S_BLOCKED, SECOND, 0, 0);
	read_now();
	drain_unfinished(&d, &host, 4 * SECOND);
	assert_int_equal(fake.n_waits, 4);
	assert_int_equal(fake.waits[0].x.total_ns, 3 * SECOND);
	assert_int_equal(fake.waits[0].x.flags, STORE_WAIT_UNFINISHED | STORE_WAIT_BEFORE);
	assert_int_equal(fake.waits[1].x.total_ns, SECOND);
	assert_int_equal(fake.waits[2].x.class, STORE_READY_WOKEN);
	assert_int_equal(fake.waits[2].x.total_ns, 2 * SECOND);
	assert_int_equal(fake.waits[3].x.class, STORE_RUNNING);
	assert_int_equal(fake.waits[3].x.total_ns, 0);
}

/* A thread, alone in a process that began at `start_ns`; its id distinguishes the names. */
static void who_put(uint32_t tid, uint32_t tgid, uint64_t start_ns)
{
	struct offcpu_who who = {
		.task = tid, .tgid = tgid, .tid = tid, .start_ns = start_ns, .comm = "cc1"};
	uint64_t id = ID(tid);

	fake_map_put(FAKE_WHO, &id, sizeof(id), &who, sizeof(who));
	sum_put(tid, OFFCPU_PIPE, 1, 100, 100);
}

static uint32_t task_of_last(void)
{
	return fake.waits[fake.n_waits - 1].task;
}

TEST_WITH(who_came_and_went_between_two_readings_is_told_by_command, begin, end)
{
	host.bucket_s = 10;
	thread_put(7);
	read_now(); /* at 2 s */
	who_put(9, 9, 2 * SECOND + 1);
	read_now();
	assert_int_equal(task_of_last(), FAKE_TASK + FAKE_BRIEF);
	sum_put(9, OFFCPU_PIPE, 3, 300, 100); /* a CPU still adds to it */
	read_now();
	assert_int_equal(task_of_last(), FAKE_TASK + FAKE_BRIEF);
}

TEST_WITH(a_thread_that_came_and_went_in_a_process_that_stays_is_told_by_that_process, begin, end)
{
	host.bucket_s = 10;
	thread_put(7); /* of process 5 */
	read_now();
	who_put(9, 5, 2 * SECOND + 1);
	read_now();
	assert_in_range(task_of_last(), FAKE_TASK, FAKE_TASK + FAKE_BRIEF - 1);
	who_put(10, 10, SECOND); /* the whole process went, and is older than the reading before */
	read_now();
	assert_in_range(task_of_last(), FAKE_TASK, FAKE_TASK + FAKE_BRIEF - 1);
}

TEST_WITH(who_is_there_is_told_by_itself_and_so_are_all_where_buckets_are_short, begin, end)
{
	uint64_t task = 9;
	struct offcpu_thread renamed = {.id = ID(9) + 1, .tgid = 9, .tid = 9, .in_scope = 1};

	host.bucket_s = 10;
	who_put(8, 8, SECOND - 1); /* it was there before the capture began, at 1 s */
	read_now();
	assert_in_range(task_of_last(), FAKE_TASK, FAKE_TASK + FAKE_BRIEF - 1);
	who_put(9, 9, 2 * SECOND + 1);
	fake_map_put(FAKE_THREADS, &task, sizeof(task), &renamed,
		     sizeof(renamed)); /* under another name by now */
	read_now();
	assert_int_equal(task_of_last(), 9);
	host.bucket_s = 1;
	who_put(10, 10, 3 * SECOND + 1);
	read_now();
	assert_int_equal(task_of_last(), 10);
}

TEST_WITH(before_the_first_reading_and_asked_for_meanwhile_is_short_lived_too, begin, end)
{
	host.bucket_s = 10;
	who_put(8, 8, SECOND + 1);
	/* the waker of a thread is asked for */
	assert_int_equal(drain_thread(&d, &host, ID(8)), 8);
	read_now();
	assert_int_equal(task_of_last(), FAKE_TASK + FAKE_BRIEF);
}

TEST_WITH(threads_of_one_name_are_one_where_buckets_are_long, begin, end)
{
	thread_put(7); /* of process 5 */
	sum_put(7, OFFCPU_PIPE, 10, 5000, 900);
	host.bucket_s = 10;
	read_now();
	assert_in_range(task_of_last(), FAKE_TASK, FAKE_TASK + FAKE_BRIEF - 1);
	thread_put(5); /* the process's first thread is stored by itself */
	sum_put(5, OFFCPU_PIPE, 10, 5000, 900);
	read_now();
	assert_int_equal(task_of_last(), 5);
}
