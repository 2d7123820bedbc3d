/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/sampling.h"

#include <errno.h>

#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/maproom.h"
#include "loaders/lib/bpf/load/percpu.h"
#include "loaders/lib/bpf/load/scope.h"
#include "loaders/lib/bpf/load/tables.h"
#include "loaders/lib/bpf/run/scripts.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "probes/lib/stack.h"

_Static_assert(SAMPLE_TALLY_SLOTS == FAMILY_TALLY_SLOTS, "same histogram");

static void ring_size(struct bpf_object *obj, const char *name, uint64_t bytes)
{
	bpf_map__set_max_entries(bpf_object__find_map_by_name(obj, name), (uint32_t)bytes);
}

void sampling_configure(struct bpf_object *obj, const struct family_config *c, uint32_t kinds,
			const struct sampling_settings *s)
{
	int64_t depth = sysctl_kernel("perf_event_max_stack", STACK_KERNEL_MAX);

	if (depth > 0 && depth < STACK_KERNEL_MAX)
		*s->stack_depth = (uint32_t)depth;
	ring_size(obj, "events", c->ring_bytes);
	*s->ring_bytes = (uint32_t)c->ring_bytes;
	ring_size(obj, "late", c->late_bytes);
	scope_configure(obj, c->target, s->scope);
	*s->runtimes_on = kinds != 0;
	*s->runtime_kinds = kinds;
	scripts_configure(obj, kinds);
	maproom_on_demand(obj);
	leftout_disable(obj);
}

int sampling_load(struct bpf_object_skeleton *s, const struct family_config *c)
{
	int err = tables_reuse(*s->obj, c->tables);

	if (!err)
		err = bpf_object__load_skeleton(s);
	return err ? err : scope_fill(*s->obj, c->target);
}

int sampling_tries(int (*load)(const struct family_config *c, uint32_t kinds, void *out),
		   const struct family_config *c, const struct leftout_program *optional, void *out)
{
	int err;

	do {
		err = -EINVAL;
		for (size_t i = 0; i < SCRIPTS_TRIES && scripts_refused(err); i++)
			err = load(c, SCRIPTS_KINDS[i], out);
	} while (err && leftout_next(optional, err));
	return err;
}

int sampling_attach(struct bpf_program *prog, struct bpf_link **link, struct err *e)
{
	if (bpf_program__fd(prog) < 0)
		return 0;
	*link = bpf_program__attach(prog);
	return *link ? 0 : load_error(-errno, bpf_program__name(prog), e);
}

bool sampling_fits(const struct stack_event *ev, size_t size)
{
	return size >= sizeof(*ev) && ev->n_kernel <= STACK_KERNEL_MAX &&
	       ev->n_user <= STACK_USER_MAX &&
	       size >= sizeof(*ev) + ((size_t)ev->n_kernel + ev->n_user) * sizeof(__u64);
}

struct sample_tally sampling_sum(const struct bpf_map *tally)
{
	struct sample_tally sum;

	percpu_sum(bpf_map__fd(tally), &sum, sizeof(sum));
	return sum;
}

void sampling_tally(const struct bpf_map *tally, struct family_tally *out)
{
	const struct sample_tally sum = sampling_sum(tally);

	*out = (struct family_tally){.seen = sum.seen,
				     .lost = sum.ring_full,
				     .no_room = sum.no_room,
				     .unfollowed = sum.unfollowed,
				     .run_ns = sum.run_ns};
	for (int k = 0; k < SAMPLE_TALLY_SLOTS; k++)
		out->slot[k] = sum.slot[k];
}
