/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/offcpu/hooks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/programs.h"
#include "loaders/lib/bpf/load/scope.h" /* the skeleton has its configuration */
#include "probes/offcpu.h"
#include "probes/offcpu.skel.h"
#include "schema/base/log.h"

#define NOT_FOLLOWED "child processes of the command are not followed"

const struct leftout_program HOOKS_OPTIONAL[] = {
	{"offcpu_waking",
	 "which thread woke another one is not recorded, and time that a woken thread "
	 "waits for a CPU counts as part of its wait"},
	{"offcpu_wakeup_new", "a new thread's first wait for a CPU is not recorded"},
	{"offcpu_exec",
	 "until it waits for the first time, a new program's time is the one's before it"},
	{"offcpu_fork", NOT_FOLLOWED},
	{"offcpu_exit",
	 "processes that ended keep their places in the set of those that are followed"},
	{"offcpu_seed", "threads that sleep all the time are not seen"},
	{"offcpu_came", "which waits get a stack is chosen before it is known how long they are"},
	{0}};

struct hook {
	struct bpf_program *prog;
	const char *tracepoint;
};

static void hooks_of(const struct offcpu_bpf *skel, struct hook out[HOOKS])
{
	const struct hook all[HOOKS] = {
		{skel->progs.offcpu_fork, "sched_process_fork"},
		{skel->progs.offcpu_exit, "sched_process_exit"},
		{skel->progs.offcpu_exec, "sched_process_exec"},
		{skel->progs.offcpu_waking, "sched_waking"},
		{skel->progs.offcpu_wakeup_new, "sched_wakeup_new"},
		{skel->progs.offcpu_came,
		 "sched_exit_tp"}, /* before switches: what they draw is sent there */
		{skel->progs.offcpu_switch, "sched_switch"},
		{skel->progs.offcpu_switch_old, "sched_switch"},
	};

	for (int i = 0; i < HOOKS; i++)
		out[i] = all[i];
}

/* libbpf's own handler of such a section looks for type information even if the program's type is
 * set later. */
int hooks_plain(void)
{
	static int registered;

	if (registered <= 0)
		registered = libbpf_register_prog_handler("tp_btf/", BPF_PROG_TYPE_RAW_TRACEPOINT,
							  0, NULL);
	return registered < 0 ? registered : 0;
}

int hooks_attach(struct offcpu_bpf *skel, bool plain, struct bpf_link *links[HOOKS], struct err *e)
{
	struct hook hooks[HOOKS];

	hooks_of(skel, hooks);
	for (int i = 0; i < HOOKS; i++) {
		struct bpf_program *prog = programs_used(skel->obj, hooks[i].prog);

		if (bpf_program__fd(prog) < 0)
			continue;
		links[i] = plain ? bpf_program__attach_raw_tracepoint(prog, hooks[i].tracepoint) :
				   bpf_program__attach(prog);
		if (!links[i])
			return load_error(-errno, bpf_program__name(prog), e);
	}
	return 0;
}

/* The last first: what a switch draws is still sent behind it. */
void hooks_detach(struct bpf_link *links[HOOKS])
{
	for (int i = HOOKS - 1; i >= 0; i--) {
		bpf_link__destroy(links[i]);
		links[i] = NULL;
	}
}

/* Reading the iterator runs the program for each thread. */
void hooks_seed(struct offcpu_bpf *skel, bool plain)
{
	struct bpf_link *link = NULL;
	char buf[64];
	int fd = -1;

	if (plain)
		return;
	if (bpf_program__autoload(skel->progs.offcpu_seed)) {
		link = bpf_program__attach_iter(skel->progs.offcpu_seed, NULL);
		fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	}
	if (fd < 0)
		leftout_add(HOOKS_OPTIONAL, "offcpu_seed");
	while (fd >= 0 && read(fd, buf, sizeof(buf)) > 0)
		;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
}
