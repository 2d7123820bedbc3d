/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming_kernel: kernel addresses by kallsyms. The table is read at the first kernel frame, from
 * the file that an earlier capture kept if there is one; at the first address that the file lacks,
 * all of /proc/kallsyms is read. It is read again when an address outside the kernel's own text has
 * no name (a module was loaded; BPF programs are looked up elsewhere first), after a pause that
 * doubles while such an address is not found there either (it was a program that has been unloaded
 * since), and that keeps reading below a third of a percent of a core; and every ten minutes while
 * frames of modules or BPF programs occur, because others may have replaced these at the same
 * address.
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/names/kallsyms.h"
#include "loaders/lib/host/names/private.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"
#include "schema/base/strbuf.h"

#define PAUSE_MIN_NS (10 * NSEC_PER_SEC)
#define PAUSE_MAX_NS (600 * NSEC_PER_SEC)
#define PAUSE_COSTS  300 /* times what the last reading took, at least */
#define CACHE_MAX    32768
/* If _text is unknown: x86-64 maps the kernel's text above this, so offsets are at least short. */
#define TEXT_UNKNOWN 0xffffffff80000000ull

void naming_kernel_forget(struct naming *n)
{
	for (size_t i = 0; i < ARRAY_SIZE(n->kernel); i++)
		idmap_clear(&n->kernel[i]);
	idmap_clear(&n->kernel_images);
}

void naming_kernel_release(struct naming *n)
{
	for (size_t i = 0; i < ARRAY_SIZE(n->kernel); i++)
		idmap_release(&n->kernel[i]);
	idmap_release(&n->kernel_images);
	kallsyms_free(n->kallsyms);
}

struct kallsyms *naming_kallsyms(const struct naming *n)
{
	return n->kallsyms;
}

static int load(struct naming *n, struct kallsyms **fresh)
{
	const char *dir = n->o.kallsyms ? NULL : n->o.store_dir;
	int rc;

	n->kallsyms_partial = !n->kallsyms_tried && dir && !kallsyms_kept(dir, fresh);
	if (n->kallsyms_partial)
		return 0;
	rc = kallsyms_load(n->o.kallsyms, fresh);
	if (!rc && !n->kallsyms_tried && dir)
		kallsyms_keep(*fresh, dir);
	return rc;
}

static void reload(struct naming *n)
{
	struct kallsyms *fresh = NULL;
	int64_t began = clock_cpu_ns(), least;
	int rc = load(n, &fresh);

	least = (clock_cpu_ns() - began) * PAUSE_COSTS;
	least = least < PAUSE_MIN_NS ? PAUSE_MIN_NS : least;
	n->kallsyms_read_ns = clock_boot_ns();
	if (rc) {
		if (!n->kallsyms_tried)
			log_warn("cannot read kernel symbols: %s; kernel frames have no names",
				 strerror(-rc));
		n->kallsyms_pause_ns = PAUSE_MAX_NS;
	} else {
		n->kallsyms_pause_ns *= 2; /* find() takes that back */
		if (n->kallsyms_pause_ns < least)
			n->kallsyms_pause_ns = least;
		if (n->kallsyms_pause_ns > PAUSE_MAX_NS)
			n->kallsyms_pause_ns = PAUSE_MAX_NS;
		n->kallsyms_least_ns = least;
		kallsyms_free(n->kallsyms);
		n->kallsyms = fresh;
		n->stat.kernel_hidden = kallsyms_hidden(fresh);
		if (kallsyms_skipped(fresh))
			log_debug("%zu lines of the kernel's symbols cannot be read",
				  kallsyms_skipped(fresh));
		for (size_t i = 0; i < ARRAY_SIZE(n->kernel); i++)
			idmap_clear(&n->kernel[i]);
	}
	n->kallsyms_tried = true;
}

static uint32_t image_of(struct naming *n, const char *module)
{
	struct strbuf name cleanup_strbuf = STRBUF_INIT;
	uint64_t key = hash_str(HASH_SEED, module), id;
	struct store_image img = {
		.kind = STORE_IMAGE_MODULE, .path = "", .build_id = "", .key = ""};

	if (idmap_get(&n->kernel_images, key, &id))
		return (uint32_t)id;
	if (!module[0])
		img.kind = STORE_IMAGE_KERNEL;
	else if (!strcmp(module, "bpf"))
		img.kind = STORE_IMAGE_BPF;
	strbuf_addf(&name, "[%s]", module[0] ? module : "kernel");
	img.name = strbuf_str(&name);
	id = store_image(n->w, &img);
	idmap_set(&n->kernel_images, key, id);
	return (uint32_t)id;
}

void naming_kernel_begin(struct naming *n)
{
	if (!n->kallsyms_tried)
		reload(n);
}

static bool is_program(struct naming *n, uint64_t addr, struct kallsyms_symbol *sym)
{
	return n->o.programs && n->o.programs(n->o.programs_ctx, addr, sym);
}

static bool find(struct naming *n, uint64_t addr, struct kallsyms_symbol *sym)
{
	int64_t age;

	naming_kernel_begin(n);
	age = clock_boot_ns() - n->kallsyms_read_ns;
	if (n->kallsyms && kallsyms_find(n->kallsyms, addr, sym)) {
		if (!sym->module[0] || age < PAUSE_MAX_NS)
			return true;
		reload(n);
	} else if (n->kallsyms && kallsyms_is_text(n->kallsyms, addr)) {
		return false;
	} else if (is_program(n, addr, sym)) {
		return true;
	} else if (age >= n->kallsyms_pause_ns || n->kallsyms_partial) {
		reload(n);
	} else {
		return false;
	}
	if (!n->kallsyms || !kallsyms_find(n->kallsyms, addr, sym))
		return false;
	n->kallsyms_pause_ns = n->kallsyms_least_ns;
	return true;
}

static struct frame_name unnamed(struct naming *n, uint64_t addr)
{
	uint64_t text = n->kallsyms ? kallsyms_text(n->kallsyms) : 0;
	struct store_frame f = {.image = image_of(n, "")};

	if (!text)
		text = addr >= TEXT_UNKNOWN ? TEXT_UNKNOWN : 0;
	f.offset = addr >= text ? addr - text : addr & 0xffffffff;
	return (struct frame_name){
		.frame = store_frame(n->w, &f), .why = WHY_KERNEL, .slot = SLOT_NONE};
}

struct frame_name naming_kernel(struct naming *n, uint64_t addr, enum look look)
{
	struct kallsyms_symbol sym;
	struct store_frame f = {0};
	struct frame_name a;
	uint64_t cached;

	if (idmap_get(&n->kernel[look], addr, &cached))
		return frame_name_unpack(cached);
	if (!find(n, look_is_back(look) ? addr - 1 : addr, &sym)) {
		a = unnamed(n, addr);
	} else {
		f.image = image_of(n, sym.module);
		f.leaf = look_is_leaf(look);
		f.offset = (f.leaf ? sym.start : addr) - sym.base;
		f.function = store_function(
			n->w,
			&(struct store_function){.name = sym.name, .image = f.image, .file = ""});
		a = (struct frame_name){.frame = store_frame(n->w, &f), .slot = SLOT_NONE};
	}
	if (n->kernel[look].n >= CACHE_MAX)
		idmap_clear(&n->kernel[look]);
	idmap_set(&n->kernel[look], addr, frame_name_pack(a));
	return a;
}
