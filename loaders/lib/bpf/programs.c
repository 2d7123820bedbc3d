// SPDX-License-Identifier: Apache-2.0
#include "loaders/lib/bpf/programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

void programs_read(struct bpf_object *obj, struct programs_figures *out)
{
	struct bpf_program *prog;

	*out = (struct programs_figures){0};
	if (!obj)
		return;
	bpf_object__for_each_program(prog, obj) {
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
