/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/pstack/save.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/names/naming.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/store/model/hist.h"
#include "schema/store/read/waits.h"
#include "schema/store/write/waits.h"
#include "schema/store/write/writer.h"

#define NAMES_MS 2000
#define WRITE_MS 20000

struct keep {
	struct store_writer *store;
	struct naming *naming;
	uint32_t run;
	uint64_t time_ns;
	int64_t utc_ns;   /* as of when */
	int64_t since_ns; /* from then to the time of the stacks */
	struct {
		struct stack_event ev;
		uint64_t frames[PSTACK_KERNEL_MAX + STACK_USER_MAX];
	} stack;
};

/* The bucket is the one that ends with that instant, or holds it: a recording's last. */
static void run_begin(struct keep *k, const struct save_opts *o)
{
	int64_t offset = clock_boot_offset_ns(), stood = (int64_t)o->time_ns + offset;
	struct store_run run = {.family = "pstack",
				.options = "sonde-pstack --keep",
				.bucket_s = 1,
				.recording = o->recording,
				.cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
				.boot_offset_ns = offset};

	k->time_ns = o->time_ns;
	k->utc_ns = o->at_ns && o->at_ns < stood ? o->at_ns : stood;
	k->since_ns = stood - k->utc_ns;
	run.from_ns = k->utc_ns - 1 - (k->utc_ns - 1) % NSEC_PER_SEC;
	k->run = store_run_begin(k->store, &run);
	store_run_until(k->store, k->run, k->utc_ns);
}

int save_open(const struct save_opts *o, struct hostmaps *hm, struct keep **out, struct err *e)
{
	const struct store_writer_opts opts = {.dir = o->dir};
	const struct naming_opts no = {.generated = true};
	struct keep *k = mem_alloc(sizeof(*k));
	int rc = store_writer_open(&opts, &k->store, e);

	if (!rc)
		rc = naming_open(hm, k->store, &no, &k->naming, e);
	if (rc) {
		if (k->store)
			store_writer_close(k->store, 0, NULL);
		free(k);
		return rc;
	}
	run_begin(k, o);
	*out = k;
	return 0;
}

static void stack_put(struct keep *k, const struct pstack_record *r, const struct walk *walk)
{
	size_t n = walk ? walk->n : 0,
	       kernel = r->n_kernel < PSTACK_KERNEL_MAX ? r->n_kernel : PSTACK_KERNEL_MAX;

	n = n < STACK_USER_MAX ? n : STACK_USER_MAX;
	k->stack.ev = (struct stack_event){
		.time_ns = k->time_ns,
		.start_ns = r->start_ns,
		.tgid = r->tgid,
		.tid = r->tid,
		.exec_id = r->exec_id,
		.n_kernel = (uint16_t)kernel,
		.n_user = (uint16_t)n,
		.end = (uint16_t)(walk ? walk->end : STACK_END_NONE),
		.flags = r->flags & PSTACK_KTHREAD ? STACK_F_KTHREAD : 0,
	};
	memcpy(k->stack.ev.thread, r->thread, STACK_COMM_LEN);
	memcpy(k->stack.frames, r->kernel, kernel * sizeof(*r->kernel));
	if (n)
		memcpy(k->stack.frames + kernel, walk->frames, n * sizeof(*walk->frames));
}

static uint32_t class_of(const char *reason)
{
	for (uint32_t class = STORE_WAIT_LOCK; reason && class <= STORE_WAIT_CHILD; class ++)
		if (!strcmp(store_wait_reason(class), reason))
			return class;
	return STORE_WAIT_OTHER;
}

void save_thread(struct keep *k, const struct pstack_record *r, const struct thread *t,
		 const struct walk *walk)
{
	uint64_t ns = t->blocked_ns > k->since_ns ? (uint64_t)(t->blocked_ns - k->since_ns) : 0;
	const uint32_t one = 1;
	const struct store_amount a = {.n = 1,
				       .value = ns,
				       .max = ns,
				       .hist = ns ? &one : NULL,
				       .n_hist = 1,
				       .first_slot = hist_slot(ns)};
	struct naming_result named;
	int err = -ESTALE;

	if (t->blocked_ns >= 0 && t->blocked_ns < k->since_ns)
		return;
	stack_put(k, r, walk);
	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		naming_stack(k->naming, &k->stack.ev, k->stack.frames, &named);
		err = store_amount(k->store,
				   store_series_labelled(k->store, k->run, named.process, t->name,
							 t->tid, named.stack, STORE_KIND_STANDING,
							 class_of(t->reason)),
				   k->utc_ns - 1, &a);
	}
	if (err)
		store_loss(k->store, k->run, k->utc_ns, "store", 1);
}

int save_close(struct keep *k, struct err *e)
{
	int rc;

	if (!k)
		return 0;
	naming_drain(k->naming, NAMES_MS);
	naming_close(k->naming);
	rc = store_writer_close(k->store, WRITE_MS, e);
	free(k);
	return rc;
}
