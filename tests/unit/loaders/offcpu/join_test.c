/* SPDX-License-Identifier: Apache-2.0 */
/* join: stacks and lengths come in any order, or one of them never. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/names/naming.h"
#include "loaders/offcpu/join.h"
#include "tests/unit/loaders/offcpu/fakes.h"
#include "tests/unit/test.h"

struct wire {
	struct stack_event ev;
	uint64_t frames[8];
};

static struct join j;
static struct family_host host;

static int begin(void **state)
{
	(void)state;
	fakes_reset(&host);
	join_init(&j, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	join_release(&j);
	return 0;
}

static void stack_at(uint32_t tid, uint64_t out_ns, uint16_t n_kernel, uint16_t n_user)
{
	struct wire w = {.ev = {.time_ns = out_ns,
				.tgid = 5,
				.tid = tid,
				.n_kernel = n_kernel,
				.n_user = n_user},
			 .frames = {150, 250, 350, 450, 550, 650}};
	struct naming_result named = {0};

	join_stack(&j, &host, &w.ev, sizeof(w.ev) + 8u * (n_kernel + n_user), &named);
}

static void end_at(uint32_t tid, uint64_t out_ns, uint64_t blocked_ns, uint64_t ready_ns,
		   uint32_t weight)
{
	struct offcpu_end e = {.ev = {.time_ns = out_ns + blocked_ns + ready_ns,
				      .tgid = 5,
				      .tid = tid,
				      .end = OFFCPU_RECORD_END},
			       .out_ns = out_ns,
			       .blocked_ns = blocked_ns,
			       .ready_ns = ready_ns,
			       .weight = weight,
			       .class = blocked_ns ? OFFCPU_PIPE : OFFCPU_PREEMPTED,
			       .blocked = blocked_ns > 0};

	join_end(&j, &host, &e);
}

TEST_WITH(a_wait_of_a_request_counts_for_itself_alone, begin, end)
{
	struct offcpu_end e = {
		.ev = {.time_ns = 153, .tgid = 5, .tid = 7, .end = OFFCPU_RECORD_END, .tag = 90},
		.out_ns = 100,
		.blocked_ns = 50,
		.ready_ns = 3,
		.weight = 4,
		.class = OFFCPU_LOCK,
		.blocked = 1};

	stack_at(7, 100, 2, 1);
	join_end(&j, &host, &e);
	assert_int_equal(fake.amounts[0].value, 200);
	assert_int_equal(fake.tagged_n, 2);
	assert_int_equal(fake.tagged_ns, 53);
	stack_at(7, 200, 2, 1);
	end_at(7, 200, 50, 3, 1);
	assert_int_equal(fake.tagged_n, 2);
}

static void wake_at(uint32_t tid, uint64_t at_ns, uint32_t slept)
{
	struct offcpu_wake e = {
		.ev = {.time_ns = at_ns, .tgid = 5, .tid = tid, .end = OFFCPU_RECORD_WAKE},
		.tgid = 6,
		.tid = slept,
		.slept_ns = 40,
		.class = OFFCPU_LOCK};

	join_wake(&j, &host, &e);
}

TEST_WITH(a_wait_with_both_is_an_amount_blocked_and_one_ready, begin, end)
{
	stack_at(7, 100, 2, 1);
	assert_int_equal(fake.n_amounts, 0);
	end_at(7, 100, 50, 3, 4);
	assert_int_equal(fake.n_amounts, 2);
	assert_int_equal(fake.amounts[0].kind, STORE_KIND_OFFCPU);
	assert_int_equal(fake.amounts[0].label, OFFCPU_PIPE);
	assert_int_equal(fake.amounts[0].n, 4);
	assert_int_equal(fake.amounts[0].value, 200);
	assert_int_equal(fake.amounts[0].max, 50);
	assert_int_equal(fake.amounts[0].stack, 201);
	assert_int_equal(fake.amounts[1].kind, STORE_KIND_RUNQUEUE);
	assert_int_equal(fake.amounts[1].label, OFFCPU_WOKEN);
	assert_int_equal(fake.amounts[1].value, 12);
	assert_int_equal(fake.amounts[0].n_variance, 12); /* 4 x 3: it stands for three others */
	assert_int_equal(host.added, 8);
}

TEST_WITH(a_wait_that_stands_for_others_has_a_variance_and_one_for_itself_has_none, begin, end)
{
	stack_at(7, 100, 2, 1);
	end_at(7, 100, 50000, 3000, 8);
	assert_int_equal(fake.amounts[0].value_variance, 8 * 7 * 50 * 50);
	assert_int_equal(fake.amounts[1].value_variance, 8 * 7 * 3 * 3);
	stack_at(7, 200, 2, 1);
	end_at(7, 200, 20000000, 3000, 1);
	assert_int_equal(fake.amounts[2].n_variance + fake.amounts[2].value_variance +
				 fake.amounts[3].value_variance,
			 0);
	stack_at(7, 300, 2, 1);
	end_at(7, 300, 1ull << 60, 0, 1u << 16);
	assert_int_equal(fake.amounts[4].value_variance, 1ull << 62);
}

TEST_WITH(a_stack_that_comes_after_its_length_is_joined_too, begin, end)
{
	end_at(7, 100, 0, 9, 1);
	assert_int_equal(fake.n_amounts, 0);
	stack_at(7, 100, 1, 3);
	assert_int_equal(fake.n_amounts, 1);
	assert_int_equal(fake.amounts[0].kind, STORE_KIND_RUNQUEUE);
	assert_int_equal(fake.amounts[0].label, OFFCPU_PREEMPTED);
	assert_int_equal(fake.amounts[0].stack, 103);
}

TEST_WITH(waits_of_one_thread_are_told_apart_by_when_they_began, begin, end)
{
	stack_at(7, 100, 1, 1);
	stack_at(8, 100, 1, 2);
	end_at(8, 100, 20, 0, 1);
	end_at(7, 101, 30, 0, 1); /* of no stack that is here */
	assert_int_equal(fake.n_amounts, 2);
	assert_int_equal(fake.amounts[0].stack, 102);
	end_at(7, 100, 10, 0, 1);
	assert_int_equal(fake.n_amounts, 4);
	assert_int_equal(fake.amounts[2].stack, 101);
}

TEST_WITH(a_length_without_a_stack_is_stored_at_the_end_and_a_stack_without_a_length_is_not, begin,
	  end)
{
	end_at(7, 100, 50, 3, 1);
	stack_at(8, 100, 1, 1);
	join_finish(&j, &host);
	assert_int_equal(fake.n_amounts, 2);
	assert_int_equal(fake.amounts[0].stack, 0);
	assert_int_equal(j.waiting.n, 0);
}

TEST_WITH(the_same_stack_twice_is_one, begin, end)
{
	stack_at(7, 100, 1, 1);
	stack_at(7, 100, 1, 1);
	end_at(7, 100, 50, 3, 1);
	assert_int_equal(fake.n_amounts, 2);
	assert_int_equal(j.waiting.n, 0);
}

TEST_WITH(a_thread_that_leaves_anew_ends_a_wait_whose_end_was_lost, begin, end)
{
	for (uint64_t at = 100; at < 200; at++)
		stack_at(7, at, 1, 1);
	stack_at(7, 150, 2, 1); /* again */
	for (int i = 0; i < JOIN_OVER_TURNS; i++) {
		assert_int_equal(j.waiting.n, 100);
		join_settle(&j, &host, 300);
	}
	assert_int_equal(j.waiting.n, 1); /* it may last */
	end_at(7, 199, 50, 3, 1);
	assert_int_equal(fake.amounts[0].stack, 101);
	assert_int_equal(j.waiting.n, 0);
}

TEST_WITH(an_end_that_a_younger_stack_has_overtaken_finds_its_stack, begin, end)
{
	stack_at(7, 100, 1,
		 1); /* both unwound later and delivered together; the ends are in the other ring */
	stack_at(7, 200, 2, 1);
	stack_at(7, 150, 3, 1); /* of a wake-up in between */
	join_settle(&j, &host, 300);
	end_at(7, 100, 20, 0, 1);
	wake_at(7, 150, 9);
	end_at(7, 200, 50, 0, 1);
	assert_int_equal(fake.n_amounts, 4);
	assert_int_equal(fake.amounts[0].stack, 101);
	assert_int_equal(fake.amounts[2].stack, 201);
	assert_int_equal(fake.wakes[0].x.stack, 301);
	assert_int_equal(j.waiting.n, 0);
}

TEST_WITH(where_the_stores_ids_have_changed_the_stack_is_named_anew, begin, end)
{
	stack_at(7, 100, 1, 1);
	assert_int_equal(fake.named, 1);
	fake.stale = 1;
	end_at(7, 100, 50, 3, 1);
	assert_int_equal(fake.named, 2);
	assert_int_equal(fake.n_amounts, 2);
	fake.stale = 100; /* it never takes it: that is counted */
	stack_at(7, 200, 1, 1);
	end_at(7, 200, 50, 3, 6);
	assert_int_equal(fake.n_amounts, 2);
	assert_int_equal(host.refused, 12);
}

TEST_WITH(the_schedulers_own_frames_are_left_out, begin, end)
{
	join_release(&j);
	fake.symbols = true;
	join_init(&j, NULL);
	stack_at(7, 100, 5, 1); /* tick, __schedule, schedule, 2 others */
	end_at(7, 100, 50, 3, 1);
	assert_int_equal(fake.amounts[0].stack, 201);
}

TEST_WITH(a_wake_up_is_told_with_its_stack_whichever_comes_first, begin, end)
{
	stack_at(7, 100, 2, 1);
	wake_at(7, 100, 9);
	wake_at(7, 200, 9);
	assert_int_equal(fake.n_wakes, 1);
	stack_at(7, 200, 3, 1);
	assert_int_equal(fake.n_wakes, 2);
	assert_int_equal(fake.n_amounts, 0);
	assert_int_equal(fake.wakes[0].task, 9);
	assert_int_equal(fake.wakes[0].x.waker, 7);
	assert_int_equal(fake.wakes[0].x.stack, 201);
	assert_int_equal(fake.wakes[0].x.class, OFFCPU_LOCK);
	assert_true(fake.wakes[0].x.n == 1 && fake.wakes[0].x.total_ns == 40);
	assert_int_equal(fake.wakes[1].x.stack, 301);
	assert_int_equal(j.waiting.n, 0);
}

TEST_WITH(a_wake_up_of_the_hardware_has_no_part_of_whom_it_came_upon, begin, end)
{
	const uint64_t frames[] = {150, 2050, 550, 2150, 650, 750, 0x1000};
	struct wire w = {.ev = {.time_ns = 100, .tgid = 5, .tid = 7, .n_kernel = 6, .n_user = 1}};
	struct naming_result named = {0};

	join_release(&j);
	fake.symbols = true;
	join_init(&j, NULL);
	memcpy(w.frames, frames, sizeof(frames));
	join_stack(&j, &host, &w.ev, sizeof(w.ev) + sizeof(frames), &named);
	wake_at(7, 100, 9);
	assert_int_equal(fake.wakes[0].x.stack, 200); /* tick, and the interrupt's entry */
}

TEST_WITH(what_never_gets_its_stack_is_stored_without_one, begin, end)
{
	end_at(7, 100, 50, 3, 1);
	wake_at(8, 100, 9);
	stack_at(9, 100, 1, 1);
	join_settle(&j, &host, JOIN_PATIENCE_NS);
	assert_int_equal(fake.n_amounts, 0);
	join_settle(&j, &host, JOIN_PATIENCE_NS + 1000);
	assert_int_equal(fake.n_amounts, 2);
	assert_int_equal(fake.n_wakes, 1);
	assert_int_equal(fake.wakes[0].x.stack, 0);
	assert_int_equal(j.waiting.n, 1); /* a wait may last */
}

static uint32_t thread_is(void *ctx, struct family_host *h, uint64_t id)
{
	(void)ctx;
	(void)h;
	return id == 77 ? 12 : 0;
}

static void waited_on(uint64_t out_ns, const struct offcpu_object *on, uint64_t waker)
{
	struct offcpu_end e = {.ev = {.time_ns = out_ns + 50,
				      .tgid = (uint32_t)getpid(),
				      .tid = 7,
				      .end = OFFCPU_RECORD_END},
			       .out_ns = out_ns,
			       .blocked_ns = 50,
			       .weight = 4,
			       .class = OFFCPU_LOCK,
			       .blocked = 1,
			       .waker = waker,
			       .on = *on};

	stack_at(7, out_ns, 2, 1);
	join_end(&j, &host, &e);
}

TEST_WITH(what_was_waited_on_stands_beside_with_who_ended_it, begin, end)
{
	j.thread = thread_is;
	waited_on(100, &(struct offcpu_object){.kind = OFFCPU_ON_FUTEX, .value = 0x7f00}, 77);
	waited_on(200, &(struct offcpu_object){.kind = OFFCPU_ON_NOTHING}, 77);
	waited_on(300,
		  &(struct offcpu_object){.kind = OFFCPU_ON_PEER,
					  .family = AF_INET,
					  .peer = {10, 0, 0, 5},
					  .port = 5432},
		  0);
	waited_on(
		400,
		&(struct offcpu_object){
			.kind = OFFCPU_ON_PEER, .family = AF_INET6, .peer = {[15] = 1}, .port = 80},
		0);
	waited_on(500,
		  &(struct offcpu_object){.kind = OFFCPU_ON_PORT, .family = AF_INET, .port = 8080},
		  0);
	assert_int_equal(fake.n_on, 4);
	assert_string_equal(fake.on[0].object, "futex 0x7f00");
	assert_true(fake.on[0].x.n == 4 && fake.on[0].x.total_ns == 200 &&
		    fake.on[0].x.stack == 201);
	assert_int_equal(fake.on[0].x.waker, 12);
	assert_int_equal(fake.on[0].task, 7);
	assert_string_equal(fake.on[1].object, "10.0.0.5:5432");
	assert_string_equal(fake.on[2].object, "[::1]:80");
	assert_string_equal(fake.on[3].object, "port 8080");
	assert_int_equal(fake.on[3].x.waker, 0);
}

TEST_WITH(a_file_is_its_path_as_long_as_the_descriptor_is_the_same_file, begin, end)
{
	struct offcpu_object on = {.kind = OFFCPU_ON_FILE};
	struct stat st;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), other;

	assert_false(fd < 0 || fstat(fd, &st));
	on.fd = (uint32_t)fd;
	on.value = st.st_ino;
	waited_on(100, &on, 0);
	other = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_int_equal(dup2(other, fd), fd);
	waited_on(200, &on, 0); /* as it was */
	on.value++;
	waited_on(300, &on, 0);
	close(other);
	close(fd);
	assert_string_equal(fake.on[0].object, "/dev/null");
	assert_string_equal(fake.on[1].object, "/dev/null");
	assert_int_equal(strncmp(fake.on[2].object, "inode ", 6) &&
				 strcmp(fake.on[2].object, "/dev/zero"),
			 0);
}

TEST_WITH(ever_new_objects_do_not_fill_the_store, begin, end)
{
	for (uint64_t i = 0; i < OBJECTS_HOURLY; i++)
		waited_on(i, &(struct offcpu_object){.kind = OFFCPU_ON_FUTEX, .value = i}, 0);
	assert_string_not_equal(fake.on[(fake.n_on - 1) % FAKES].object, "[others]");
	waited_on(9000, &(struct offcpu_object){.kind = OFFCPU_ON_FUTEX, .value = 9000}, 0);
	assert_string_equal(fake.on[(fake.n_on - 1) % FAKES].object, "[others]");
	waited_on(9001, &(struct offcpu_object){.kind = OFFCPU_ON_FUTEX, .value = 5}, 0);
	assert_string_equal(fake.on[(fake.n_on - 1) % FAKES].object, "futex 0x5");
	waited_on(3600000000000, &(struct offcpu_object){.kind = OFFCPU_ON_FUTEX, .value = 9000},
		  0);
	assert_string_equal(fake.on[(fake.n_on - 1) % FAKES].object, "futex 0x2328");
}

TEST_WITH(a_stack_that_comes_late_ends_no_younger_wait, begin, end)
{
	stack_at(7, 200, 2, 1);
	stack_at(7, 100, 1, 1); /* of a wake-up, unwound later, before the wake-up itself arrives */
	wake_at(7, 100, 9);
	end_at(7, 200, 50, 3, 1);
	assert_int_equal(fake.n_amounts, 2);
	assert_int_equal(fake.amounts[0].stack, 201);
	assert_int_equal(fake.wakes[0].x.stack, 101);
	assert_int_equal(j.waiting.n, 0);
}
