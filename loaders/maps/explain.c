// SPDX-License-Identifier: Apache-2.0
/* explain: see the header. A client like any other, for as long as its answer takes. */
#include "loaders/maps/explain.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/hostmaps.h"
#include "loaders/lib/host/mapsproto.h"
#include "loaders/lib/host/perfmap.h"
#include "loaders/lib/host/unwind.h"
#include "probes/runtimes/runtime.h"
#include "probes/tables.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/runtimes.h"
#include "schema/image/image.h"

#define SEED_MS  5000
#define INDEX_MS 20000 /* for all that it has mapped */

struct file {
	struct hostmaps_image *image;
	uint64_t bytes;
};

struct findings {
	struct file *files;
	size_t n, cap;
	uint64_t regions, bytes; /* executable memory without a file */
};

static void await(struct hostmaps *hm, bool (*done)(struct hostmaps *hm), int timeout_ms)
{
	int64_t until = clock_boot_ns() + (int64_t)timeout_ms * 1000000;

	while (!done(hm) && clock_boot_ns() < until) {
		struct pollfd pfd = {.fd = hostmaps_fd(hm), .events = POLLIN};

		poll(&pfd, 1, 50);
		hostmaps_read(hm);
	}
}

static bool seeded(struct hostmaps *hm)
{
	return hostmaps_seeded(hm);
}

static bool settled(struct hostmaps *hm)
{
	return !hostmaps_pending(hm);
}

static void find(void *ctx, uint64_t start, uint64_t end, struct hostmaps_image *image)
{
	struct findings *f = ctx;

	if (!image && start >> 63)
		return; /* the vsyscall page: the kernel's */
	if (!image) {
		f->regions++;
		f->bytes += end - start;
		return;
	}
	for (size_t i = 0; i < f->n; i++)
		if (f->files[i].image == image) {
			f->files[i].bytes += end - start;
			return;
		}
	mem_grow(f->files, f->n, f->cap);
	f->files[f->n++] = (struct file){.image = image, .bytes = end - start};
}

static const char *state_of(const struct hostmaps_image *img, const struct unwind_head *head)
{
	if (!img->state)
		return "pending";
	if (!img->index)
		return "refused";
	return head->page_count ? "ready" : "no rows";
}

static bool looks_like_python(const char *name)
{
	return !strncmp(name, "libpython", 9) || (!strncmp(name, "python", 6) && !strstr(name, ".so"));
}

/* The interpreter that the file holds; NULL: it holds none, as far as can be seen. */
static json_t *runtime_json(const struct hostmaps_image *img)
{
	struct python_layout l;
	const void *section;
	char version[32];
	size_t size;

	if (!img->index)
		return NULL;
	if (!image_python(img->index, &section, &size) || size != sizeof(l))
		return looks_like_python(img->name) ? json_pack("{s:s, s:b}", "name", runtime_name(RUNTIME_PYTHON), "walked", 0) : NULL;
	memcpy(&l, section, sizeof(l));
	snprintf(version, sizeof(version), "%u.%u.%u", l.version >> 24, l.version >> 16 & 0xff, l.version >> 8 & 0xff);
	return json_pack("{s:s, s:b, s:s}", "name", runtime_name(RUNTIME_PYTHON), "walked", 1, "version", version);
}

static json_t *file_json(const struct file *f)
{
	struct unwind_head head = {0};
	json_t *runtime = runtime_json(f->image);
	const void *data;
	size_t size;

	if (f->image->index && image_unwind(f->image->index, &data, &size) && size >= sizeof(head))
		memcpy(&head, data, sizeof(head));
	return json_pack("{s:s%, s:I, s:s, s:I, s:I, s:b, s:s, s:o*}", "path", f->image->path, strnlen(f->image->path, 4096),
			 "bytes", (json_int_t)f->bytes, "state", state_of(f->image, &head), "rows",
			 (json_int_t)head.row_count, "unsupported", (json_int_t)head.unsupported, "go",
			 f->image->index && image_ident(f->image->index)->go, "reason", f->image->reason, "runtime", runtime);
}

/* Is there a file with the names of its own code? */
static json_t *perf_map_json(const struct hostmaps_process *p)
{
	struct perfmap_stamp stamp = {0};
	struct perfmap *map = NULL;
	int rc = perfmap_read(p->tgid, p->nspid ? p->nspid : p->tgid, p->uid, &stamp, &map);
	json_t *o = json_pack("{s:s, s:I}", "state", !rc ? "read" : rc == -ENOENT ? "none" : "refused", "names",
			      (json_int_t)(rc ? 0 : perfmap_count(map)));

	perfmap_free(map);
	return o;
}

static json_t *process_json(struct hostmaps *hm, const struct hostmaps_process *p, const struct findings *f)
{
	json_t *files = json_array();

	(void)hm;
	for (size_t i = 0; i < f->n; i++) {
		json_t *one = file_json(&f->files[i]);

		if (one) /* a path that is no UTF-8 cannot be said in JSON */
			json_array_append_new(files, one);
	}
	return json_pack("{s:i, s:s, s:s, s:o, s:{s:I, s:I, s:o}}", "pid", (int)p->tgid, "comm", p->comm, "exe", p->exe,
			 "files", files, "anonymous", "regions", (json_int_t)f->regions, "bytes", (json_int_t)f->bytes,
			 "perf_map", perf_map_json(p));
}

int explain(uint32_t pid, const char *store_dir, struct err *e)
{
	const struct hostmaps_opts o = {.store_dir = store_dir};
	struct hostmaps_process *p;
	struct findings f = {0};
	struct hostmaps *hm;
	int rc = hostmaps_open(&o, &hm, e);
	json_t *out;

	if (rc)
		return rc;
	await(hm, seeded, SEED_MS);
	p = hostmaps_running(hm, pid);
	if (!p) {
		hostmaps_close(hm);
		return err_set(e, -ESRCH, EXIT_USAGE, "no process %u", pid);
	}
	hostmaps_mappings(hm, p, find, &f);
	await(hm, settled, INDEX_MS);
	out = process_json(hm, p, &f);
	if (out)
		json_dumpf(out, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(out);
	free(f.files);
	hostmaps_close(hm);
	return 0;
}
