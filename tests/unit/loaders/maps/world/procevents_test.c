/* SPDX-License-Identifier: Apache-2.0 */
/* procevents: messages of the process connector, whole and cut, and the kernel's own. */
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/maps/world/procevents.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

#define AT_MSG sizeof(struct nlmsghdr)
#define AT_EV  (AT_MSG + sizeof(struct cn_msg))

struct message {
	char bytes[AT_EV + sizeof(struct proc_event)];
};

static void put(struct message *m, uint32_t idx, uint16_t len, const struct proc_event *ev)
{
	const struct cn_msg msg = {.id = {.idx = idx, .val = CN_VAL_PROC}, .len = len};

	memcpy(m->bytes + AT_MSG, &msg, sizeof(msg));
	memcpy(m->bytes + AT_EV, ev, sizeof(*ev));
}

static struct proc_event exit_event(int pid, int tgid, uint32_t code)
{
	return (struct proc_event){
		.what = PROC_EVENT_EXIT,
		.event_data.exit = {.process_pid = pid, .process_tgid = tgid, .exit_code = code}};
}

static struct message exit_of(int pid, int tgid, uint32_t code)
{
	const struct proc_event ev = exit_event(pid, tgid, code);
	struct message m = {0};

	put(&m, CN_IDX_PROC, sizeof(ev), &ev);
	return m;
}

TEST(the_exit_of_a_process_is_told_and_nothing_else)
{
	struct message m = exit_of(70, 70, 7 << 8), thread = exit_of(71, 70, 0), other = m;
	struct proc_event ev = exit_event(70, 70, 0);
	uint32_t tgid = 0, code = 0;

	assert_true(procevents_parse(&m, sizeof(m), &tgid, &code));
	assert_int_equal(tgid, 70);
	assert_int_equal(code, 7 << 8);
	assert_false(procevents_parse(&thread, sizeof(thread), &tgid, &code));
	put(&other, 9, sizeof(ev), &ev);
	assert_false(procevents_parse(&other, sizeof(other), &tgid, &code));
	put(&other, CN_IDX_PROC, 8, &ev);
	assert_false(procevents_parse(&other, sizeof(other), &tgid, &code));
	ev.what = PROC_EVENT_FORK;
	put(&other, CN_IDX_PROC, sizeof(ev), &ev);
	assert_false(procevents_parse(&other, sizeof(other), &tgid, &code));
}

TEST(a_message_that_is_cut_is_passed_over)
{
	struct message m = exit_of(70, 70, 0);
	uint32_t tgid, code;

	for (size_t n = 0; n < sizeof(m); n++) {
		char *cut = malloc(
			n ? n : 1); /* an exact copy, so that a sanitizer sees a read beyond it */

		memcpy(cut, &m, n);
		procevents_parse(cut, n, &tgid, &code);
		free(cut);
	}
}

TEST(the_kernel_tells_how_a_child_of_ours_ends)
{
	struct procevents *p = procevents_open();
	uint32_t code = 0;
	pid_t pid;

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
