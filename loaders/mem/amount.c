/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/amount.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "loaders/lib/host/maps/inflight.h"
#include "loaders/lib/host/names/kallsyms.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/base/array.h"
#include "schema/base/hash.h"

#define LEADING_MAX 12
#define TRIES       3 /* the store may ask for new ids once or twice */

static int put(struct family_host *h, const struct stack_event *ev, const uint64_t *frames,
	       const char *leaf, enum store_kind kind, const struct store_amount *a,
	       struct naming_result *named, uint32_t *series)
{
	char thread[STACK_COMM_LEN + 1];
	uint32_t tid = ev->tid;

	if (leaf)
		naming_stack_with(h->naming, ev, frames, amount_frame(h->store, leaf), named);
	else
		naming_stack(h->naming, ev, frames, named);
	naming_thread(named, ev->thread, thread, &tid);
	if (h->bucket_s >= FAMILY_ALWAYS_S && tid != ev->tgid)
		tid = 0;
	*series = store_series(h->store, h->run, named->process, thread, tid, named->stack, kind);
	return store_amount(h->store, *series, family_utc(h, (int64_t)ev->time_ns), a);
}

void amount_store(struct family_host *h, const struct stack_event *ev, const uint64_t *frames,
		  const char *leaf, enum store_kind kind, const struct store_amount *a,
		  uint64_t tag, uint64_t events, struct naming_result *named)
{
	uint32_t series = 0;
	int err = -ESTALE;

	for (int i = 0; i < TRIES && err == -ESTALE; i++)
		err = put(h, ev, frames, leaf, kind, a, named, &series);
	*(err ? &h->refused : &h->added) += events;
	if (!err)
		(void)inflight_store(h->store, h->run, family_utc(h, (int64_t)ev->time_ns), tag,
				     series, a->n, a->value);
}

uint16_t amount_leading(struct family_host *h, const struct stack_event *ev, const uint64_t *frames)
{
	static const char *const own[] = {"bpf_", "__bpf_", "__traceiter_", "__schedule",
					  "schedule"};
	struct kallsyms *k;
	struct kallsyms_symbol sym;
	uint16_t n = 0;

	naming_kernel_begin(h->naming);
	k = naming_kallsyms(h->naming);
	for (; k && n < ev->n_kernel && n < LEADING_MAX; n++) {
		bool mine = false;

		if (kallsyms_find(k, frames[n] - 1, &sym))
			for (size_t i = 0; i < ARRAY_SIZE(own); i++)
				mine |= !strncmp(sym.name, own[i], strlen(own[i]));
		else /* a BPF program's code, or what leads there */
			mine = !kallsyms_is_text(k, frames[n] - 1);
		if (!mine)
			break;
	}
	return n;
}

/* A function that leads from the exception to handle_mm_fault. */
static bool is_entry(const char *name)
{
	return !strcmp(name, "do_user_addr_fault") || !strcmp(name, "exc_page_fault") ||
	       !strcmp(name, "asm_exc_page_fault");
}

uint16_t amount_fault(struct family_host *h, const struct stack_event *ev, const uint64_t *frames)
{
	uint16_t leading = 0;
	struct kallsyms *k;
	struct kallsyms_symbol sym;

	naming_kernel_begin(h->naming);
	k = naming_kallsyms(h->naming);
	for (uint16_t n = 0; k && n < ev->n_kernel; n++) {
		const char *name = kallsyms_find(k, frames[n] - 1, &sym) ? sym.name : "";

		if (leading ? leading == n && is_entry(name) : !strcmp(name, "handle_mm_fault"))
			leading = n + 1;
	}
	return leading ? leading : amount_leading(h, ev, frames);
}

uint32_t amount_frame(struct store_writer *w, const char *name)
{
	const struct store_image image = {.kind = STORE_IMAGE_UNKNOWN,
					  .name = "[memory]",
					  .path = "",
					  .build_id = "",
					  .key = ""};
	const struct store_function function = {
		.name = name, .image = store_image(w, &image), .file = ""};
	const struct store_frame frame = {.image = function.image,
					  .offset = hash_str(HASH_SEED, name) & 0xffffffffff,
					  .function = store_function(w, &function)};

	return store_frame(w, &frame);
}
