/* SPDX-License-Identifier: Apache-2.0 */
/* A client like any other, while it collects its answer. */
#include "loaders/maps/explain.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/maps/mapsproto.h"
#include "loaders/lib/host/names/jitreader.h"
#include "loaders/lib/host/names/perfmap.h"
#include "loaders/lib/host/unwind/unwind.h"
#include "loaders/lib/runtimes/hotspot.h"
#include "loaders/maps/nativemark.h"
#include "probes/lib/tables.h"
#include "probes/runtimes/runtime.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/image/format.h"
#include "schema/image/image.h"
#include "schema/image/tls.h"

#define SEED_MS  30000 /* a host in trouble takes long */
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

/* Runtimes of scripts: the names of their program and library, and the index section of the
 * versions that sonde can walk; 0: none is. */
static const struct runtime {
	const char *name, *program, *library;
	uint32_t section;
} RUNTIMES[] = {
	{"python", "python", "libpython", IMAGE_SECTION_PYTHON},
	{"php", "php", "libphp", IMAGE_SECTION_PHP},
	{"ruby", "ruby", "libruby", IMAGE_SECTION_RUBY},
	{"java", NULL, "libjvm.so", IMAGE_SECTION_HOTSPOT},
	{"javascript", "node", "libnode.so", IMAGE_SECTION_V8},
	{"dotnet", NULL, "libcoreclr.so", 0},
	{"erlang", "beam.smp", NULL, IMAGE_SECTION_BEAM},
	{"perl", "perl", "libperl.so", IMAGE_SECTION_PERL},
	{"lua", "lua", "liblua", 0},
	{"luajit", "luajit", "libluajit", 0},
	{"r", "R", "libR.so", 0},
	{"julia", "julia", "libjulia", 0},
	{"wasmtime", "wasmtime", NULL, 0},
	{"deno", "deno", NULL, 0},
	{"bun", "bun", NULL, 0},
};

/* "php", "php8.2", "php-fpm8.2", "libphp8.2.so": not "phpize". */
static bool looks_like(const struct runtime *r, const char *name)
{
	size_t n = r->program ? strlen(r->program) : 0;

	if (r->library && !strncmp(name, r->library, strlen(r->library)))
		return true;
	if (!n || strncmp(name, r->program, n))
		return false;
	name += n;
	if (!strncmp(name, "-fpm", 4) || !strncmp(name, "-cgi", 4))
		name += 4;
	return strspn(name, "0123456789.") == strlen(name);
}

/* The layout of V8 says in its third number which Node it is, and in its fourth whether that V8's
 * frames can be read. */
static uint32_t number_at(const void *section, size_t size, unsigned i)
{
	uint32_t v = 0;

	if (size >= (i + 1) * sizeof(v))
		memcpy(&v, (const char *)section + i * sizeof(v), sizeof(v));
	return v;
}

static void v8_version_write(const void *section, size_t size, char *out, size_t room)
{
	uint32_t v = number_at(section, size, 1), node = number_at(section, size, 2);

	if (node)
		snprintf(out, room, "%u.%u.%u (V8 %u.%u)", node >> 16 & 0xff, node >> 8 & 0xff,
			 node & 0xff, v >> 8 & 0xff, v & 0xff);
	else
		snprintf(out, room, "of V8 %u.%u", v >> 8 & 0xff, v & 0xff);
}

/* A layout's second number is the version (probes/runtimes): 0x030b02f0 of Python, 0x0802 of
 * others; "": it says none. */
static void version_write(const struct runtime *r, const void *section, size_t size, char *out,
			  size_t room)
{
	uint32_t v = number_at(section, size, 1);

	*out = 0;
	if (v && r->section == IMAGE_SECTION_BEAM)
		snprintf(out, room, "of OTP %u", v);
	else if (v && r->section == IMAGE_SECTION_V8)
		v8_version_write(section, size, out, room);
	else if (v && r->section == IMAGE_SECTION_PYTHON)
		snprintf(out, room, "%u.%u.%u", v >> 24, v >> 16 & 0xff, v >> 8 & 0xff);
	else if (v)
		snprintf(out, room, "%u.%u", v >> 8 & 0xff, v & 0xff);
}

/* The runtime that the file holds; NULL: it holds none, as far as can be seen. */
static json_t *runtime_json(const struct hostmaps_image *img)
{
	const void *section;
	char version[64];
	size_t size = 0;

	for (size_t i = 0; img->index && i < ARRAY_SIZE(RUNTIMES); i++) {
		const struct runtime *r = &RUNTIMES[i];
		bool there = r->section && image_part(img->index, r->section, &section, &size);
		bool walked =
			there && (r->section != IMAGE_SECTION_V8 || number_at(section, size, 3));

		if (!there && !looks_like(r, img->name))
			continue;
		version_write(r, section, there ? size : 0, version, sizeof(version));
		return json_pack("{s:s, s:b, s:s, s:s}", "name", r->name, "walked", walked,
				 "version", version, "without",
				 there && r->section == IMAGE_SECTION_HOTSPOT ?
					 hotspot_without(section, size) :
					 "");
	}
	return NULL;
}

/* The program's own, where none of its files holds a runtime that is known. */
static json_t *native_json(const struct hostmaps_process *p, const struct hostmaps_image *img,
			   bool another)
{
	const char *slash = strrchr(p->exe, '/');
	const char *name =
		!another && slash && !strcmp(slash + 1, img->name) ? nativemark_of(p->tgid) : NULL;

	return name ? json_pack("{s:s, s:b, s:s, s:s}", "name", name, "walked", 0, "version", "",
				"without", "") :
		      NULL;
}

/* ---- TLS: which library the file holds, and whether family l7 reads clear text there ---- */

static const char *const LIBRARIES[] = {"tls", "openssl", "gnutls", "go", "rustls", "boringssl"};

/* Known by what their files are called, and not read. */
static const struct {
	const char *file, *library, *why;
} UNREAD[] = {
	{"libjvm.so", "java", "Java's own TLS is Java code, which has no place for a probe"},
	{"libnss3.so", "nss",
	 "NSS reads files and sockets by the same functions, in clear and inside TLS"},
};

static json_t *unread(const struct hostmaps_image *img)
{
	for (size_t i = 0; i < ARRAY_SIZE(UNREAD); i++)
		if (!strcmp(img->name, UNREAD[i].file))
			return json_pack("{s:s, s:s, s:i, s:s}", "library", UNREAD[i].library,
					 "read", "no", "probes", 0, "why", UNREAD[i].why);
	return NULL;
}

static const char *library_name(uint8_t library)
{
	return library < ARRAY_SIZE(LIBRARIES) ? LIBRARIES[library] : LIBRARIES[0];
}

/* Each once, in their order. */
static void libraries_write(const struct image_tls_site *s, size_t n, char *out, size_t size)
{
	size_t len = 0;

	*out = 0;
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < i && s[k].library != s[i].library)
			k++;
		if (k == i && len < size)
			len += (size_t)snprintf(out + len, size - len, "%s%s", len ? ", " : "",
						library_name(s[i].library));
	}
}

static const char *why_blind(const struct image_tls_site *s)
{
	if (s->result == IMAGE_TLS_RECORD && s->check_value[0] == IMAGE_TLS_STRIPPED)
		return "it has no symbols, and nothing else identifies its functions without doubt";
	if (s->library == IMAGE_TLS_GO)
		return "Go before 1.17 passes arguments in memory";
	if (s->library == IMAGE_TLS_RUSTLS)
		return "none of its functions is known to be the one of ring or AWS-LC that ciphers "
		       "records";
	return "in this build no place for a probe is known";
}

/* {"library", "read": "emulated" | "stepped" | "no", "probes", "why"}; NULL: none that is known. */
static json_t *explain_tls(const struct hostmaps_image *img)
{
	const struct image_tls_site *s = NULL;
	size_t n = img->index ? image_tls(img->index, &s) : 0;
	const struct image_tls_site *blind = NULL;
	bool slow = false;
	char libraries[64];

	if (!n)
		return unread(img);
	for (size_t i = 0; i < n; i++) {
		if (s[i].role == IMAGE_TLS_BLIND && !blind)
			blind = &s[i];
		slow |= s[i].slow &&
			s[i].value[0].place !=
				IMAGE_TLS_NUMBER; /* else it is hit only where nothing was read */
	}
	libraries_write(s, n, libraries, sizeof(libraries));
	return json_pack("{s:s, s:s, s:i, s:s}", "library",
			 blind ? library_name(blind->library) : libraries, "read",
			 blind ? "no" :
			 slow  ? "stepped" :
				 "emulated",
			 "probes", blind ? 0 : (int)n, "why", blind ? why_blind(blind) : "");
}

static json_t *file_json(const struct file *f, json_t *runtime)
{
	struct unwind_head head = {0};
	const void *data;
	size_t size;

	if (f->image->index && image_unwind(f->image->index, &data, &size) && size >= sizeof(head))
		memcpy(&head, data, sizeof(head));
	return json_pack("{s:s%, s:I, s:s, s:I, s:I, s:b, s:s, s:o*, s:o*}", "path", f->image->path,
			 strnlen(f->image->path, 4096), "bytes", (json_int_t)f->bytes, "state",
			 state_of(f->image, &head), "rows", (json_int_t)head.row_count,
			 "unsupported", (json_int_t)head.unsupported, "go",
			 f->image->index && image_ident(f->image->index)->go, "reason",
			 f->image->reason, "runtime", runtime, "tls", explain_tls(f->image));
}

/* Does the process have a file with the names of its generated code, and what came of reading it?
 * "names": the entries that are used. */
static json_t *perf_map_json(const struct hostmaps_process *p)
{
	struct jitreader *reader = jitreader_open();
	struct jitnames_told told;
	struct perfmap *map = NULL;
	int rc = jitnames_read(reader, p, &map, &told);
	const char *state = rc == -ENOENT ? "none" : rc ? "refused" : told.cut ? "cut" : "read";
	const char *reason = rc == -ENOENT ? "" :
			     rc            ? jitnames_reason(rc) :
			     told.cut      ? "longer than 64 MiB: the rest is not read" :
					     "";
	json_t *o = json_pack("{s:s, s:I, s:s, s:s, s:s}", "state", state, "names",
			      (json_int_t)told.names, "kind", told.dump ? "jitdump" : "perf map",
			      "reason", reason, "fix",
			      rc || told.cut ? jitnames_fix(rc ? rc : -E2BIG) : "");

	perfmap_free(map);
	jitreader_close(reader);
	return o;
}

static json_t *process_json(struct hostmaps *hm, const struct hostmaps_process *p,
			    const struct findings *f)
{
	json_t *files = json_array();
	bool known = false;

	(void)hm;
	for (size_t i = 0; i < f->n; i++) {
		json_t *r = runtime_json(f->files[i].image);

		known |= r ||
			 (f->files[i].image->index && image_ident(f->files[i].image->index)->go);
		json_decref(r);
	}
	for (size_t i = 0; i < f->n; i++) {
		json_t *r = runtime_json(f->files[i].image);
		json_t *one =
			file_json(&f->files[i], r ? r : native_json(p, f->files[i].image, known));

		if (one) /* a path that is no UTF-8 cannot be said in JSON */
			json_array_append_new(files, one);
	}
	return json_pack("{s:i, s:s, s:s, s:o, s:{s:I, s:I, s:o}}", "pid", (int)p->tgid, "comm",
			 p->comm, "exe", p->exe, "files", files, "anonymous", "regions",
			 (json_int_t)f->regions, "bytes", (json_int_t)f->bytes, "perf_map",
			 perf_map_json(p));
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
