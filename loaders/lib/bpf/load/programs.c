/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

void programs_read(struct bpf_object *obj, struct programs_figures *out)
{
	struct bpf_program *prog;

	*out = (struct programs_figures){0};
	if (!obj)
		return;
	bpf_object__for_each_program (prog, obj) {
		struct bpf_prog_info info = {0};
		__u32 len = sizeof(info);
		int fd = bpf_program__fd(prog);

		if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
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

/* ---- iterators ---- */

#define ITER "iter/"

/* Loads an empty program: also works where a policy refuses programs one by one, by name. */
static bool iterator_accepted(const char *target, const char *name)
{
	const struct bpf_insn empty[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int id = libbpf_find_vmlinux_btf_id(target, BPF_TRACE_ITER), fd;
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = BPF_TRACE_ITER,
		    .attach_btf_id = (uint32_t)id);

	if (id <= 0)
		return false;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, name, "GPL", empty,
			   sizeof(empty) / sizeof(empty[0]), &o);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

bool programs_iterates(const char *target)
{
	return iterator_accepted(target, "iterates");
}

size_t programs_drop_iterators(struct bpf_object *obj)
{
	struct bpf_program *prog;
	size_t n = 0;

	bpf_object__for_each_program (prog, obj) {
		const char *section = bpf_program__section_name(prog);

		if (strncmp(section, ITER, strlen(ITER)) || !bpf_program__autoload(prog) ||
		    iterator_accepted(section + strlen(ITER), bpf_program__name(prog)))
			continue;
		bpf_program__set_autoload(prog, false);
		n++;
	}
	return n;
}
