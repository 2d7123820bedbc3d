/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* false: it is not loaded. */
static bool info_of(const struct bpf_program *prog, struct bpf_prog_info *info)
{
	__u32 len = sizeof(*info);
	int fd = bpf_program__fd(prog);

	return fd >= 0 && !bpf_obj_get_info_by_fd(fd, info, &len);
}

void programs_read(struct bpf_object *obj, struct programs_figures *out)
{
	struct bpf_program *prog;

	*out = (struct programs_figures){0};
	if (!obj)
		return;
	bpf_object__for_each_program (prog, obj) {
		struct bpf_prog_info info = {0};

		if (!info_of(prog, &info))
			continue;
		out->ns += info.run_time_ns;
		out->runs += info.run_cnt;
		out->missed += info.recursion_misses;
	}
}

#define STILL "_still"

/* Since 6.15 global functions may be called with preemption off; since 7.0 tracepoints run with it
 * on. */
static bool kernel_keeps(void)
{
	unsigned int major, minor;
	struct utsname u;

	return !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 15));
}

static struct bpf_program *still_of(struct bpf_object *obj, const struct bpf_program *prog)
{
	char name[64];

	snprintf(name, sizeof(name), "%s" STILL, bpf_program__name(prog));
	return bpf_object__find_program_by_name(obj, name);
}

void programs_keep_still(struct bpf_object *obj)
{
	struct bpf_program *prog;

	if (!kernel_keeps())
		return;
	bpf_object__for_each_program (prog, obj) {
		struct bpf_program *still = still_of(obj, prog);

		if (!still || !bpf_program__autoload(prog))
			continue;
		bpf_program__set_autoload(still, true);
		bpf_program__set_autoload(prog, false);
	}
}

struct bpf_program *programs_used(struct bpf_object *obj, struct bpf_program *prog)
{
	struct bpf_program *still = still_of(obj, prog);

	return still && bpf_program__autoload(still) ? still : prog;
}

uint64_t programs_missed(struct bpf_object *obj, struct bpf_program *prog)
{
	struct bpf_prog_info info = {0};

	return info_of(programs_used(obj, prog), &info) ? info.recursion_misses : 0;
}
