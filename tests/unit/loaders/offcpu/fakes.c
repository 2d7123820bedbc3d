/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/loaders/offcpu/fakes.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/load/mapread.h"
#include "loaders/lib/bpf/load/percpu.h"
#include "loaders/lib/host/maps/inflight.h"
#include "loaders/lib/host/names/kallsyms.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/base/array.h"
#include "schema/store/model/hist.h"
#include "schema/store/write/writer.h"

struct fakes fake;

void fakes_reset(struct family_host *h)
{
	memset(&fake, 0, sizeof(fake));
	fake.epoch = 1;
	*h = (struct family_host){.run = 1, .offset_ns = 1000};
}

/* ---- maps ---- */

static size_t map_at(enum fake_map m, const void *key, size_t size)
{
	size_t i = 0;

	while (i < fake.n_map[m] && memcmp(fake.map[m][i].key, key, size))
		i++;
	return i;
}

void fake_map_put(enum fake_map m, const void *key, size_t key_size, const void *value,
		  size_t value_size)
{
	size_t i = map_at(m, key, key_size);

	if (i >= FAKES || key_size > sizeof(fake.map[m][i].key) ||
	    value_size > sizeof(fake.map[m][i].value))
		abort();
	memcpy(fake.map[m][i].key, key, key_size);
	memcpy(fake.map[m][i].value, value, value_size);
	fake.map[m][i].key_size = key_size;
	fake.map[m][i].value_size = value_size;
	fake.n_map[m] += i == fake.n_map[m];
}

int mapread_each(int fd, size_t key_size, size_t value_size, mapread_fn fn, void *ctx)
{
	size_t n = fake.n_map[fd];
	uint64_t keys[FAKES][4], values[FAKES][40];

	for (size_t i = 0; i < n; i++) {
		if (fake.map[fd][i].key_size != key_size ||
		    fake.map[fd][i].value_size != value_size)
			abort();
		memcpy(keys[i], fake.map[fd][i].key, key_size);
		memcpy(values[i], fake.map[fd][i].value, value_size);
	}
	for (size_t i = 0; i < n; i++)
		fn(ctx, keys[i], values[i]);
	return 0;
}

int mapread_take(int fd, size_t key_size, size_t value_size, mapread_fn fn, void *ctx)
{
	int err = mapread_each(fd, key_size, value_size, fn, ctx);

	fake.n_map[fd] = 0;
	return err;
}

bool mapread_made(uint32_t *made)
{
	return __atomic_exchange_n(made, 0, __ATOMIC_SEQ_CST);
}

void percpu_sum_at(int fd, uint32_t key, void *sum, size_t size)
{
	if (fd != FAKE_RESTS || key >= OFFCPU_RESTS || size != sizeof(fake.rests[0]))
		abort();
	memcpy(sum, &fake.rests[key], size);
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	size_t i = fake.n_map[fd] ? map_at((enum fake_map)fd, key, fake.map[fd][0].key_size) : 0;

	if (i >= fake.n_map[fd])
		return -ENOENT;
	memcpy(value, fake.map[fd][i].value, fake.map[fd][i].value_size);
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	size_t i = fake.n_map[fd] ? map_at((enum fake_map)fd, key, fake.map[fd][0].key_size) : 0;

	if (i >= fake.n_map[fd])
		return -ENOENT;
	fake.map[fd][i] = fake.map[fd][--fake.n_map[fd]];
	return 0;
}

void mapread_remove(int fd, size_t key_size, const void *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bpf_map_delete_elem(fd, (const uint8_t *)keys + i * key_size);
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	(void)flags;
	if (key)
		abort();
	switch (fd) {
	case FAKE_FREE:
		memcpy(&fake.freed[fake.n_freed++ % FAKES], value, sizeof(fake.freed[0]));
		return 0;
	case FAKE_FREE_STEPS:
		memcpy(&fake.freed_steps[fake.n_freed_steps++ % FAKES], value,
		       sizeof(fake.freed[0]));
		return 0;
	case FAKE_FREE_WAKES:
		memcpy(&fake.freed_wakes[fake.n_freed_wakes++ % FAKES], value,
		       sizeof(fake.freed[0]));
		return 0;
	}
	abort();
}

/* ---- the store ---- */

uint32_t store_epoch(const struct store_writer *w)
{
	(void)w;
	return fake.epoch;
}

static bool refused(void)
{
	if (fake.stale <= 0)
		return false;
	fake.stale--;
	fake.epoch++;
	return true;
}

static struct fake_amount series;

uint32_t store_series_labelled(struct store_writer *w, uint32_t run, uint32_t process,
			       const char *thread, uint32_t tid, uint32_t stack,
			       enum store_kind kind, uint32_t label)
{
	(void)w;
	(void)run;
	(void)thread;
	(void)tid;
	series = (struct fake_amount){
		.process = process, .stack = stack, .label = label, .kind = kind};
	return 1;
}

int store_amount(struct store_writer *w, uint32_t id, int64_t utc_ns, const struct store_amount *a)
{
	(void)w;
	(void)id;
	(void)utc_ns;
	if (refused())
		return -ESTALE;
	series.n = a->n;
	series.value = a->value;
	series.max = a->max;
	series.n_variance = a->n_variance;
	series.value_variance = a->value_variance;
	fake.amounts[fake.n_amounts++ % FAKES] = series;
	return 0;
}

/* A task's id is its thread's id; of those that have none FAKE_TASK and their process. */
uint32_t store_task(struct store_writer *w, uint32_t run, uint32_t process, const char *thread,
		    uint32_t tid)
{
	(void)w;
	(void)run;
	(void)thread;
	return tid ? tid : FAKE_TASK + process;
}

int store_wait(struct store_writer *w, uint32_t task, int64_t utc_ns, const struct store_wait *x)
{
	(void)w;
	if (refused())
		return -ESTALE;
	struct fake_wait *to = &fake.waits[fake.n_waits++ % FAKES];
	struct strbuf text = STRBUF_INIT;
	struct hist h = {0};

	*to = (struct fake_wait){task, utc_ns, *x, ""};
	hist_add(&h, x->first_slot, x->hist, x->n_hist);
	if (hist_encode(&h, 0, &text))
		snprintf(to->hist, sizeof(to->hist), "%s", strbuf_str(&text));
	hist_release(&h);
	strbuf_release(&text);
	return 0;
}

int store_wake(struct store_writer *w, uint32_t task, int64_t utc_ns, const struct store_wake *x)
{
	(void)w;
	(void)utc_ns;
	fake.wakes[fake.n_wakes++ % FAKES] = (struct fake_wake){task, *x};
	return 0;
}

int store_wait_on(struct store_writer *w, uint32_t task, int64_t utc_ns,
		  const struct store_wait_on *x)
{
	struct fake_on *on = &fake.on[fake.n_on++ % FAKES];

	(void)w;
	(void)utc_ns;
	*on = (struct fake_on){.task = task, .x = *x};
	snprintf(on->object, sizeof(on->object), "%s", x->object);
	return 0;
}

int store_culprit(struct store_writer *w, uint32_t task, int64_t utc_ns,
		  const struct store_culprit *x)
{
	(void)w;
	(void)utc_ns;
	fake.culprits[fake.n_culprits++ % FAKES] = (struct fake_culprit){task, *x};
	return 0;
}

/* ---- requests ---- */

int inflight_store(struct store_writer *w, uint32_t run, int64_t utc_ns, uint64_t tag, uint32_t of,
		   uint64_t n, uint64_t value)
{
	(void)w;
	(void)run;
	(void)utc_ns;
	(void)of;
	fake.tagged_n += tag ? n : 0;
	fake.tagged_ns += tag ? value : 0;
	return 0;
}

/* ---- names ---- */

void naming_brief(struct naming *n, const struct stack_event *ev, struct naming_result *out)
{
	(void)n;
	(void)ev;
	*out = (struct naming_result){.exe = "", .process = FAKE_BRIEF};
}

uint32_t naming_turned(const struct naming *n)
{
	(void)n;
	return 0;
}

void naming_stack(struct naming *n, const struct stack_event *ev, const uint64_t *frames,
		  struct naming_result *out)
{
	(void)n;
	(void)frames;
	fake.named++;
	*out = (struct naming_result){
		.process = ev->tgid, .stack = ev->n_kernel * 100u + ev->n_user, .exe = ""};
}

int kallsyms_load(const char *path, struct kallsyms **out)
{
	(void)path;
	*out = fake.symbols ? (struct kallsyms *)&fake : NULL;
	return fake.symbols ? 0 : -ENOENT;
}

int kallsyms_kept(const char *store_dir, struct kallsyms **out)
{
	(void)store_dir;
	(void)out;
	return -ENOENT;
}

bool kallsyms_hidden(const struct kallsyms *k)
{
	(void)k;
	return false;
}

void kallsyms_free(struct kallsyms *k)
{
	(void)k;
}

bool kallsyms_find(struct kallsyms *k, uint64_t addr, struct kallsyms_symbol *out)
{
	(void)k;
	static const char *const names[] = {[2] = "__schedule",
					    [3] = "schedule",
					    [20] = "try_to_wake_up",
					    [21] = "asm_sysvec_apic_timer_interrupt"};
	const char *name = addr / 100 < ARRAY_SIZE(names) ? names[addr / 100] : NULL;

	*out = (struct kallsyms_symbol){.name = name ? name : "tick"};
	return true;
}
