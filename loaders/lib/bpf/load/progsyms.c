/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/progsyms.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/names/kallsyms.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define PAUSE_MIN_NS (10 * NSEC_PER_SEC)
#define PAUSE_MAX_NS (600 * NSEC_PER_SEC)
#define FUNCS_MAX    4096 /* of one program: the kernel allows 256 */
#define NAME_LEN     512  /* KSYM_NAME_LEN */

struct symbol {
	uint64_t start;
	uint32_t bytes;
	char *name;
};

struct progsyms {
	struct symbol *symbols;
	size_t n, cap;
	struct btf *btf; /* of the previous program: programs of one object share it */
	uint32_t btf_id;
	int64_t read_ns, pause_ns; /* 0: never read */
};

/* What the kernel reports about one program, by function. */
struct told {
	uint64_t *starts;
	uint32_t *bytes;
	uint8_t (*tags)[BPF_TAG_SIZE];
	struct bpf_func_info *funcs;
	uint32_t n, n_funcs;
};

static void told_release(struct told *t)
{
	free(t->starts);
	free(t->bytes);
	free(t->tags);
	free(t->funcs);
}

/* Asks twice: for the sizes, then for everything. The first function has the program's tag. */
static int tell(int fd, struct told *t, struct bpf_prog_info *info)
{
	struct bpf_prog_info all = {0};
	uint32_t size = sizeof(*info);

	if (bpf_obj_get_info_by_fd(fd, info, &size))
		return -errno;
	t->n = info->nr_jited_ksyms;
	if (!t->n || t->n > FUNCS_MAX || info->nr_jited_func_lens != t->n ||
	    info->nr_prog_tags != t->n)
		return -ENOENT;
	t->n_funcs = info->nr_func_info == t->n && info->func_info_rec_size == sizeof(*t->funcs) ?
			     t->n :
			     0;
	t->starts = mem_array(t->n, sizeof(*t->starts));
	t->bytes = mem_array(t->n, sizeof(*t->bytes));
	t->tags = mem_array(t->n, sizeof(*t->tags));
	t->funcs = mem_array(t->n, sizeof(*t->funcs));
	all.nr_jited_ksyms = all.nr_jited_func_lens = all.nr_prog_tags = t->n;
	all.jited_ksyms = (uintptr_t)t->starts;
	all.jited_func_lens = (uintptr_t)t->bytes;
	all.prog_tags = (uintptr_t)t->tags;
	all.nr_func_info = t->n_funcs;
	all.func_info_rec_size = sizeof(*t->funcs);
	all.func_info = t->n_funcs ? (uintptr_t)t->funcs : 0;
	size = sizeof(all);
	if (bpf_obj_get_info_by_fd(fd, &all, &size))
		return -errno;
	memcpy(t->tags[0], info->tag, sizeof(info->tag));
	return all.nr_jited_ksyms == t->n && t->starts[0] ? 0 : -EPERM;
}

/* The function's own name, "" if it has none. */
static const char *func_name(struct progsyms *p, uint32_t btf_id, uint32_t type_id)
{
	const struct btf_type *t;

	if (!p->btf || p->btf_id != btf_id) {
		btf__free(p->btf);
		p->btf = btf_id ? btf__load_from_kernel_by_id(btf_id) : NULL;
		p->btf_id = btf_id;
	}
	t = p->btf ? btf__type_by_id(p->btf, type_id) : NULL;
	return t ? btf__name_by_offset(p->btf, t->name_off) : "";
}

/* As bpf_prog_ksym_set_name (kernel/bpf/core.c) makes it. */
static char *ksym_name(const uint8_t tag[BPF_TAG_SIZE], const char *name)
{
	char text[NAME_LEN];
	int len = snprintf(text, sizeof(text), "bpf_prog_");

	for (int i = 0; i < BPF_TAG_SIZE; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%02x", tag[i]);
	if (*name)
		snprintf(text + len, sizeof(text) - (size_t)len, "_%s", name);
	return mem_strdup(text);
}

static void take(struct progsyms *p, int fd)
{
	struct told t = {0};
	struct bpf_prog_info info = {0};

	if (!tell(fd, &t, &info)) {
		for (uint32_t i = 0; i < t.n; i++) {
			const char *name = t.n_funcs ?
						   func_name(p, info.btf_id, t.funcs[i].type_id) :
						   info.name;

			mem_grow(p->symbols, p->n, p->cap);
			p->symbols[p->n++] = (struct symbol){t.starts[i], t.bytes[i],
							     ksym_name(t.tags[i], name)};
		}
	}
	told_release(&t);
}

static int by_start(const void *a, const void *b)
{
	uint64_t x = ((const struct symbol *)a)->start, y = ((const struct symbol *)b)->start;

	return (x > y) - (x < y);
}

static void forget(struct progsyms *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->symbols[i].name);
	p->n = 0;
	btf__free(p->btf);
	p->btf = NULL;
}

static void load(struct progsyms *p)
{
	size_t before = p->n;
	uint32_t id = 0;

	forget(p);
	while (!bpf_prog_get_next_id(id, &id)) {
		cleanup_fd int fd = bpf_prog_get_fd_by_id(id);

		if (fd >= 0)
			take(p, fd);
	}
	if (p->n)
		qsort(p->symbols, p->n, sizeof(*p->symbols), by_start);
	p->pause_ns = p->n != before || !p->read_ns  ? PAUSE_MIN_NS :
		      p->pause_ns * 2 < PAUSE_MAX_NS ? p->pause_ns * 2 :
						       PAUSE_MAX_NS;
	p->read_ns = clock_boot_ns();
}

static bool find(const struct progsyms *p, uint64_t addr, struct kallsyms_symbol *out)
{
	size_t lo = 0, hi = p->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->symbols[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || addr - p->symbols[lo - 1].start >= p->symbols[lo - 1].bytes)
		return false;
	out->name = p->symbols[lo - 1].name;
	out->module = "bpf";
	out->start = out->base = p->symbols[lo - 1].start;
	return true;
}

struct progsyms *progsyms_new(void)
{
	return mem_alloc(sizeof(struct progsyms));
}

void progsyms_free(struct progsyms *p)
{
	if (!p)
		return;
	forget(p);
	free(p->symbols);
	free(p);
}

bool progsyms_find(void *ctx, uint64_t addr, struct kallsyms_symbol *out)
{
	struct progsyms *p = ctx;
	int64_t age = clock_boot_ns() - p->read_ns;
	bool old = !p->read_ns || age >= PAUSE_MAX_NS;

	if (!old && find(p, addr, out))
		return true;
	if (!old && age < p->pause_ns)
		return false;
	load(p);
	return find(p, addr, out);
}
