// SPDX-License-Identifier: Apache-2.0
/* procevents: messages of the process connector, whole and cut, and the kernel's own. */
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/maps/procevents.h"
#include "tests/unit/missing.h"

struct __attribute__((packed)) message {
	struct nlmsghdr head;
	struct cn_msg msg;
	struct proc_event ev;
};

static struct message exit_of(int pid, int tgid, uint32_t code)
{
	struct message m = {.msg = {.id = {.idx = CN_IDX_PROC, .val = CN_VAL_PROC}, .len = sizeof(struct proc_event)}};
	struct proc_event ev = {.what = PROC_EVENT_EXIT, .event_data.exit = {.process_pid = pid, .process_tgid = tgid, .exit_code = code}};

	m.ev = ev;
	return m;
}

static void the_exit_of_a_process_is_told_and_nothing_else(void **state)
{
	struct message m = exit_of(70, 70, 7 << 8), thread = exit_of(71, 70, 0), fork = m, other = m, brief = m;
	uint32_t tgid = 0, code = 0;

	(void)state;
	assert_true(procevents_parse(&m, sizeof(m), &tgid, &code));
	assert_int_equal(tgid, 70);
	assert_int_equal(code, 7 << 8);
	assert_false(procevents_parse(&thread, sizeof(thread), &tgid, &code));
	fork.ev.what = PROC_EVENT_FORK;
	assert_false(procevents_parse(&fork, sizeof(fork), &tgid, &code));
	other.msg.id.idx = 9;
	assert_false(procevents_parse(&other, sizeof(other), &tgid, &code));
	brief.msg.len = 8;
	assert_false(procevents_parse(&brief, sizeof(brief), &tgid, &code));
}

static void a_message_that_is_cut_is_passed_over(void **state)
{
	struct message m = exit_of(70, 70, 0);
	uint32_t tgid, code;

	(void)state;
	for (size_t n = 0; n < sizeof(m); n++) {
		char *cut = malloc(n ? n : 1); /* of its own, so that a byte too far is seen */

		memcpy(cut, &m, n);
		procevents_parse(cut, n, &tgid, &code);
		free(cut);
	}
}

static void the_kernel_tells_how_a_child_of_ours_ends(void **state)
{
	struct procevents *p = procevents_open();
	uint32_t code = 0;
	pid_t pid;

	(void)state;
	if (!p)
		skip_missing("the process connector, or the right to listen to it");
	pid = fork();
	if (!pid)
		_exit(7);
	waitpid(pid, NULL, 0);
	procevents_read(p);
	assert_true(procevents_take(p, (uint32_t)pid, &code));
	assert_int_equal(code, 7 << 8);
	assert_false(procevents_take(p, (uint32_t)pid, &code));
	procevents_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_exit_of_a_process_is_told_and_nothing_else),
		cmocka_unit_test(a_message_that_is_cut_is_passed_over),
		cmocka_unit_test(the_kernel_tells_how_a_child_of_ours_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
