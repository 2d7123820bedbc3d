/* SPDX-License-Identifier: Apache-2.0 */
/* service: the state of a child that does not exist. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/children/service.h"
#include "tests/unit/test.h"

TEST(one_that_was_given_up_stays_so_until_it_is_to_be_tried_anew)
{
	struct service s;

	service_init(&s, "cpu", NULL);
	s.state = SERVICE_WAITING;
	s.failures = 3;
	service_stop(&s, 0);
	assert_int_equal(s.state, SERVICE_OFF);
	assert_int_equal(s.failures, 0);
	s.state = SERVICE_FAILED;
	service_stop(&s, 0);
	assert_int_equal(s.state, SERVICE_FAILED);
	service_try_anew(&s);
	assert_int_equal(s.state, SERVICE_OFF);
	service_release(&s);
}

TEST(a_failure_has_the_program_its_reason_its_fix_and_its_code)
{
	struct service s;
	struct err e = {0};

	service_init(&s, "cpu", NULL);
	strcpy(s.why, "no BTF");
	strcpy(s.fix, "another kernel");
	s.exit = EXIT_PREREQUISITE;
	assert_true(service_failure(&s, &e) < 0);
	assert_string_equal(e.what, "sonde-cpu does not record: no BTF");
	assert_string_equal(e.fix, "another kernel");
	assert_int_equal(e.exit, EXIT_PREREQUISITE);
	s.exit = -1; /* a signal */
	service_failure(&s, &e);
	assert_int_equal(e.exit, EXIT_RUNTIME);
	service_release(&s);
}

/* Bytes and time of BPF are those of its last report; they end with it, except for the sum. */
TEST(what_one_took_that_has_ended_stays_in_the_sum)
{
	struct service s;

	service_init(&s, "cpu", NULL);
	s.pid = 0x7ffffff0; /* no such process */
	s.state = SERVICE_STOPPING;
	s.bpf_ns = 5;
	s.map_bytes = 7;
	assert_int_equal(service_cpu_ns(&s), 5);
	service_ended(&s, 0, 100);
	assert_int_equal(service_cpu_ns(&s), 105);
	assert_int_equal(s.map_bytes, 0);
	s.pid = 0x7ffffff0;
	s.told_ns = 200; /* its helper too, which /proc does not show */
	assert_int_equal(service_cpu_ns(&s), 305);
	service_ended(&s, 0, 150);
	assert_int_equal(service_cpu_ns(&s), 305);
	service_release(&s);
}

struct heard {
	int n;
	char all[512];
};

static void hear(void *ctx, const char *cause, const char *why)
{
	struct heard *h = ctx;
	size_t at = strlen(h->all);

	h->n++;
	snprintf(h->all + at, sizeof(h->all) - at, "%s: %s\n", cause, why);
}

TEST(of_one_read_all_that_happened_is_heard)
{
	static const char lines[] =
		"{\"event\":\"happened\",\"cause\":\"slow service a:1\",\"why\":\"a:1 is slow\"}\n"
		"{\"event\":\"progress\",\"samples\":5}\n"
		"{\"event\":\"happened\",\"cause\":\"\",\"why\":\"of nothing\"}\n"
		"{\"event\":\"happened\",\"cause\":\"slow service b:2\"}\n"
		"{\"event\":\"happened\",\"cause\":\"log burst shop\",\"why\":\"shop\"}\n";
	struct heard h = {0};
	struct service s;
	int fds[2];

	service_init(&s, "l7", NULL);
	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(write(fds[1], lines, sizeof(lines) - 1), sizeof(lines) - 1);
	s.progress_fd = fds[0];
	s.happened = hear;
	s.happened_ctx = &h;
	service_read_progress(&s);
	assert_int_equal(h.n, 3);
	assert_string_equal(h.all, "slow service a:1: a:1 is slow\n"
				   "slow service b:2: slow service b:2\n"
				   "log burst shop: shop\n");
	close(fds[1]);
	service_release(&s);
}
