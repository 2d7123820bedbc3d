/* SPDX-License-Identifier: Apache-2.0 */
/* service: the state of a child that does not exist. */
#include <string.h>

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
