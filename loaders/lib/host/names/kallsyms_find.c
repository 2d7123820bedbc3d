/* SPDX-License-Identifier: Apache-2.0 */
/* kallsyms_find: what is asked of the table. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "loaders/lib/host/names/kallsyms_parts.h"

#define SPAN_KERNEL (1u << 20)
#define SPAN_MODULE (64u << 10)

/* Index of the last entry at or below addr; false: there is none. */
static bool find_entry(const struct kallsyms *k, uint64_t addr, size_t *at)
{
	size_t lo = 0, hi = k->n;

	if (!k->n || addr < k->first)
		return false;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (kallsyms_addr(k, mid) <= addr)
			lo = mid;
		else
			hi = mid;
	}
	*at = lo;
	return true;
}

static const char *name_of(struct kallsyms *k, uint32_t name)
{
	if (!(name & NAME_PFX))
		return k->pool + name;
	snprintf(k->scratch, sizeof(k->scratch), PFX "%s", k->pool + (name & ~NAME_PFX));
	return k->scratch;
}

bool kallsyms_find(struct kallsyms *k, uint64_t addr, struct kallsyms_symbol *out)
{
	const struct kallsyms_module *m;
	uint64_t start;
	size_t i;

	if (!find_entry(k, addr, &i) || k->name[i] == NAME_MARKER)
		return false;
	start = kallsyms_addr(k, i);
	m = &k->modules[k->module[i]];
	if (addr - start >= (k->module[i] ? SPAN_MODULE : SPAN_KERNEL))
		return false;
	out->name = name_of(k, k->name[i]);
	out->module = m->name;
	out->start = start;
	out->base = strcmp(m->name, "bpf") ? m->base : start;
	return true;
}

bool kallsyms_is_text(const struct kallsyms *k, uint64_t addr)
{
	return k->text && addr >= k->text && addr < k->etext;
}

uint64_t kallsyms_text(const struct kallsyms *k)
{
	return k->text;
}

bool kallsyms_hidden(const struct kallsyms *k)
{
	return k->hidden;
}

bool kallsyms_orc(const struct kallsyms *k, struct kallsyms_orc *out)
{
	const struct kallsyms_orc *o = &k->orc;

	if (!o->text || o->text_end <= o->text || !o->ips || o->ips_end <= o->ips || !o->entries)
		return false;
	*out = *o;
	return true;
}

size_t kallsyms_count(const struct kallsyms *k)
{
	return k->functions;
}

size_t kallsyms_skipped(const struct kallsyms *k)
{
	return k->skipped;
}

size_t kallsyms_bytes(const struct kallsyms *k)
{
	return k->n * ((k->rel ? sizeof(*k->rel) : sizeof(*k->wide)) + sizeof(*k->name) +
		       sizeof(*k->module)) +
	       k->pool_cap + sizeof(*k);
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->n_modules && !k->borrowed; i++)
		free((char *)(uintptr_t)k->modules[i].name);
	free(k->modules);
	if (!k->borrowed) {
		free(k->rel);
		free(k->wide);
		free(k->name);
		free(k->module);
		free(k->pool);
	}
	if (k->kept)
		munmap(k->kept, k->kept_bytes);
	free(k);
}
