/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/indexer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/compose.h"
#include "loaders/index/debugfile.h"
#include "loaders/index/lines/dwelf.h"
#include "loaders/index/lines/dwread.h"
#include "loaders/index/elf/elffile.h"
#include "loaders/index/elfsyms.h"
#include "loaders/index/go/goline.h"
#include "loaders/index/go/gopart.h"
#include "loaders/index/go/gorows.h"
#include "loaders/index/go/gotable.h"
#include "loaders/index/runtimes/hotspotpart.h"
#include "loaders/index/elf/minidebug.h"
#include "loaders/index/go/pclntab.h"
#include "loaders/index/runtimes/beampart.h"
#include "loaders/index/runtimes/perlpart.h"
#include "loaders/index/runtimes/phppart.h"
#include "loaders/index/runtimes/pypart.h"
#include "loaders/index/runtimes/rubypart.h"
#include "loaders/index/elf/symset.h"
#include "loaders/index/code/tlspart.h"
#include "loaders/index/unwind/unwind.h"
#include "loaders/index/runtimes/v8part.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"

struct job {
	struct elf_file elf;
	struct symset set;
	struct elfsyms_noted noted;
	struct image_go_record go;   /* where `ident.flags` has IMAGE_IDENT_GO, or with a version */
	struct python_layout python; /* .format 0: no interpreter; so the others */
	struct php_layout php;
	struct perl_layout perl;
	struct beam_layout beam;
	struct ruby_layout ruby;
	struct hotspot_layout hotspot;
	struct tls_part tls;
	struct v8_layout v8;
	struct unwind unwind;
	struct image_ident_record ident;
	const struct index_finder *finder;
	enum index_lines lines_wanted;
	struct go_table table;  /* where `ident.flags` has IMAGE_IDENT_GO */
	struct debugfile debug; /* the separate debug file, where it was wanted */
	struct lineset lines;
	int64_t started_cpu_ns;
	const char *lines_note;
	bool lines_later;
	void *row_bytes; /* own: the section UNWIND */
	uint64_t row_size;
	uint64_t *edges; /* own: symset.h, 4 */
	size_t edge_count;
};

/* The .symtab of another ELF file, for this one. Returns the number of its functions, or -errno. */
static long add_debug(struct job *j)
{
	int rc = debugfile_find(&j->debug, &j->elf, j->finder);

	if (rc || !j->debug.found)
		return rc;
	return elfsyms_add(&j->debug.elf, ELFSYMS_SYMTAB, &j->set, &j->noted);
}

static long add_minidebug(struct job *j)
{
	const Elf64_Shdr *s = elf_section_by_name(&j->elf, ".gnu_debugdata");
	cleanup_free void *packed = NULL;
	cleanup_free void *data = NULL;
	struct elf_file inner;
	struct source src;
	size_t len = 0;
	long n = 0;
	int rc;

	if (!s)
		return 0;
	rc = elf_section_read(&j->elf, s, &packed);
	if (rc)
		return rc == -ERANGE || rc == -EFBIG ? 0 : rc;
	if (minidebug_unpack(packed, s->sh_size, &data, &len))
		return 0;
	source_init_bytes(&src, data, len, j->elf.src.hash, j->elf.src.left);
	if (elf_open(&inner, &src, NULL))
		return 0; /* not an ELF file: as if it were not there */
	if (inner.machine == j->elf.machine && inner.is64 == j->elf.is64)
		n = elfsyms_add(&inner, ELFSYMS_SYMTAB, &j->set, &j->noted);
	elf_release(&inner);
	return n;
}

/* ---- Go ---- */

static int add_go(struct job *j)
{
	struct go_table *t = &j->table;
	int rc = go_table_find(&j->elf, &j->noted.go, t);

	if (rc == -ENOENT) {
		rc = gopart_make_unread(&j->elf, &j->noted.go, &j->go);
		return rc == -ENOENT ? 0 : rc;
	}
	if (rc)
		return rc;
	j->ident.flags |= IMAGE_IDENT_GO;
	for (uint32_t i = 0; i < t->tab.func_count && !rc; i++) {
		struct pclntab_func f;

		if (!pclntab_func(&t->tab, t->text, i, &f))
			continue;
		tls_symbols_note(&j->noted.tls, f.name, f.start, f.end - f.start, 1);
		rc = symset_add(&j->set, &(struct symset_symbol){.addr = f.start,
								 .size = f.end - f.start,
								 .name = f.name,
								 .kind = SYMSET_GO});
	}
	if (rc == -ENOSPC)
		rc = 0;
	if (!rc && j->unwind.on)
		rc = gorows_add(&j->elf, t, &j->unwind.rows);
	return rc ? rc : gopart_make(&j->elf, t, &j->noted.go, &j->go);
}

/* Since Go 1.17, on amd64. */
static bool go_has_registers(const char *version)
{
	unsigned major = 0, minor = 0;

	return sscanf(version, "go%u.%u", &major, &minor) == 2 ? major > 1 || minor >= 17 :
								 !strncmp(version, "devel", 5);
}

static int add_runtimes(struct job *j)
{
	const struct rows *rows = j->unwind.on ? &j->unwind.rows : NULL;
	int rc = pypart_make(&j->elf, &j->noted.py, rows, &j->python);

	if (!rc || rc == -ENOENT)
		rc = phppart_make(&j->elf, &j->noted.run, rows, &j->php);
	if (!rc || rc == -ENOENT)
		rc = rubypart_make(&j->elf, &j->noted.run, rows, &j->ruby);
	if (!rc || rc == -ENOENT)
		rc = perlpart_make(&j->elf, &j->noted.run, &j->perl);
	if (!rc || rc == -ENOENT)
		rc = beampart_make(&j->elf, &j->noted.run, &j->beam);
	if (!rc || rc == -ENOENT)
		rc = hotspotpart_make(&j->elf, &j->noted.run, &j->hotspot);
	if (!rc || rc == -ENOENT)
		rc = tlspart_make(&j->elf, &j->noted.tls, rows, go_has_registers(j->go.version),
				  &j->tls);
	if (!rc || rc == -ENOENT)
		rc = v8part_make(&j->elf, &j->noted.v8, &j->v8);
	return rc == -ENOENT ? 0 : rc;
}

/* .debug_frame, where .eh_frame and Go's tables leave most of the file without rows. */
static int add_debug_rows(struct job *j)
{
	int rc = unwind_add_debug(&j->unwind, &j->elf);

	if (rc || !unwind_wants_debug(&j->unwind))
		return rc;
	rc = debugfile_find(&j->debug, &j->elf, j->finder);
	return rc || !j->debug.found ? rc : unwind_add_debug(&j->unwind, &j->debug.elf);
}

/* ---- lines ---- */

/* Lines of `f`, the file itself or its debug file, and of what dwz put aside. */
static int read_dwarf(struct job *j, struct elf_file *f)
{
	struct debugfile alt = DEBUGFILE_INIT;
	cleanup_free void *main = NULL;
	cleanup_free void *shared = NULL;
	const int64_t budget_ns =
		j->lines_wanted == INDEX_LINES_ALL ? INDEX_LINES_ALL_NS : INDEX_LINES_SOON_NS;
	struct dwread_input in = {.until_cpu_ns = j->started_cpu_ns + budget_ns,
				  .skip_go = j->ident.flags & IMAGE_IDENT_GO};
	int rc = dwelf_make(f, &main, &in.main_size);

	if (!rc)
		rc = debugfile_find_alt(&alt, f, j->finder);
	if (!rc && alt.found)
		rc = dwelf_make(&alt.elf, &shared, &in.alt_size);
	debugfile_release(&alt);
	if (rc && rc != -ENOENT) {
		j->lines_note = rc == -EFBIG ? "its debug information is too large" :
					       "its debug sections are damaged";
		return rc == -ENOMEM || rc == -ESTALE ? rc : 0;
	}
	in.main = main;
	in.alt = shared;
	in.alt_missing = !shared && elf_section_by_name(f, ".gnu_debugaltlink");
	j->lines_note = dwread_run(&in, &j->lines);
	return 0;
}

/* Go's own: some milliseconds a MB of pclntab. */
static int add_go_lines(struct job *j)
{
	if (!(j->ident.flags & IMAGE_IDENT_GO))
		return 0;
	if (j->lines_wanted != INDEX_LINES_NONE)
		return goline_add(&j->elf, &j->table, &j->lines);
	j->lines_later = true;
	j->ident.flags |= IMAGE_IDENT_LINES_LATER;
	return 0;
}

static int add_dwarf_lines(struct job *j)
{
	struct elf_file *from = &j->elf;
	uint64_t size = dwelf_size(from);
	int rc;

	if (j->lines_wanted == INDEX_LINES_LOST) {
		j->lines_note =
			"reading its debug information failed: it is damaged, or takes too long";
		return 0;
	}
	if (!size) {
		rc = debugfile_find(&j->debug, &j->elf, j->finder);
		if (rc || !j->debug.found)
			return rc;
		from = &j->debug.elf;
		size = dwelf_size(from);
	}
	if (size && (j->lines_wanted == INDEX_LINES_NONE ||
		     (j->lines_wanted == INDEX_LINES_SOON && size > INDEX_LINES_SOON_BYTES))) {
		j->lines_later = true;
		j->ident.flags |= IMAGE_IDENT_LINES_LATER;
		return 0;
	}
	return size ? read_dwarf(j, from) : 0;
}

static int add_lines(struct job *j)
{
	int rc = add_go_lines(j);

	return rc ? rc : add_dwarf_lines(j);
}

/* ---- all of it ---- */

static int collect(struct job *j)
{
	long n = elfsyms_add(&j->elf, ELFSYMS_SYMTAB, &j->set, &j->noted);

	if (n == 0) {
		n = add_debug(j);
		if (n > 0)
			j->ident.flags |= IMAGE_IDENT_DEBUG_FILE;
	}
	if (n == 0)
		n = add_minidebug(j);
	if (n >= 0)
		n = elfsyms_add(&j->elf, ELFSYMS_DYNSYM, &j->set, &j->noted);
	if (n >= 0)
		n = elfsyms_add_plt(&j->elf, &j->set);
	if (n >= 0)
		n = add_go(j);
	if (n >= 0)
		n = add_runtimes(j);
	if (n >= 0)
		n = add_debug_rows(j);
	return n < 0 ? (int)n : 0;
}

static void key_format(const struct image_ident_record *id, char *key)
{
	size_t at = 0;

	for (uint32_t i = 0; i < id->build_id_len; i++)
		at += (size_t)snprintf(key + at, IMAGE_KEY_MAX - at, "%02x", id->build_id[i]);
	snprintf(key + at, IMAGE_KEY_MAX - at, "%s-%016" PRIx64,
		 id->build_id_len ? "" : "nobuildid", id->content_hash);
}

/* The rows, and the symbols that they imply. */
static int make_rows(struct job *j)
{
	int rc = unwind_finish(&j->unwind, &j->elf, &j->set, &j->row_bytes, &j->row_size);

	return rc || !j->unwind.on ? rc : rows_edges(&j->unwind.rows, &j->edges, &j->edge_count);
}

/* The sections of rows and of runtimes, then all of it together. */
static int compose(struct job *j, struct symset *set, struct index_result *r)
{
	struct compose_section extra[3 + IMAGE_PARTS];
	struct compose_input in = {.elf = &j->elf,
				   .ident = &j->ident,
				   .set = set,
				   .edges = j->edges,
				   .edge_count = j->edge_count,
				   .lines = &j->lines,
				   .lines_note = j->lines_note,
				   .extra = extra};
	const struct {
		uint32_t kind;
		const __u32 *format; /* its first member; 0: none */
		size_t size;
	} parts[] = {
		{IMAGE_SECTION_PYTHON, &j->python.format, sizeof(j->python)},
		{IMAGE_SECTION_PHP, &j->php.format, sizeof(j->php)},
		{IMAGE_SECTION_RUBY, &j->ruby.format, sizeof(j->ruby)},
		{IMAGE_SECTION_HOTSPOT, &j->hotspot.format, sizeof(j->hotspot)},
		{IMAGE_SECTION_V8, &j->v8.format, sizeof(j->v8)},
		{IMAGE_SECTION_PERL, &j->perl.format, sizeof(j->perl)},
		{IMAGE_SECTION_BEAM, &j->beam.format, sizeof(j->beam)},
	};
	int rc;

	if (j->row_size)
		extra[in.extra_count++] = (struct compose_section){.kind = IMAGE_SECTION_UNWIND,
								   .stride = 1,
								   .data = j->row_bytes,
								   .size = j->row_size};
	if (j->ident.flags & IMAGE_IDENT_GO || *j->go.version)
		extra[in.extra_count++] = (struct compose_section){.kind = IMAGE_SECTION_GO,
								   .stride = sizeof(j->go),
								   .data = &j->go,
								   .size = sizeof(j->go)};
	if (j->tls.count)
		extra[in.extra_count++] =
			(struct compose_section){.kind = IMAGE_SECTION_TLS,
						 .stride = sizeof(j->tls.sites[0]),
						 .data = j->tls.sites,
						 .size = j->tls.count * sizeof(j->tls.sites[0])};
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (*parts[i].format)
			extra[in.extra_count++] = (struct compose_section){.kind = parts[i].kind,
									   .stride = 1,
									   .data = parts[i].format,
									   .size = parts[i].size};
	j->ident.content_hash = *j->elf.src.hash;
	rc = compose_index(&in, &r->data, &r->size, &r->symbol_count);
	if (!rc)
		key_format(&j->ident, r->key);
	return rc;
}

/* What can be unwound with, before names are made readable and lines are read. */
static int tell_rows(struct job *j)
{
	struct symset none = {.code = j->set.code, .code_count = j->set.code_count};
	struct index_result r = {0};
	int rc = 0;

	if (!j->finder->rows_made)
		return 0;
	rc = compose(j, &none, &r);
	if (!rc)
		rc = j->finder->rows_made(j->finder->ctx, &r, &j->lines_wanted);
	free(none.symbols);
	free(r.data);
	return rc;
}

static void job_release(struct job *j)
{
	free(j->row_bytes);
	free(j->edges);
	unwind_release(&j->unwind);
	lineset_release(&j->lines);
	symset_release(&j->set);
	if (j->ident.flags & IMAGE_IDENT_GO)
		go_table_release(&j->table);
	debugfile_release(&j->debug);
}

static int job_run(struct job *j, struct index_result *out)
{
	struct index_result r = {0};
	struct elf_range *code = NULL;
	size_t code_count = 0;
	int rc = elf_code_ranges(&j->elf, &code, &code_count);

	if (rc)
		return rc;
	symset_init(&j->set, code, code_count);
	lineset_init(&j->lines, j->set.code, j->set.code_count);
	memcpy(j->ident.build_id, j->elf.notes.build_id, sizeof(j->ident.build_id));
	j->ident.build_id_len = (uint32_t)j->elf.notes.build_id_len;
	j->ident.machine = j->elf.machine;
	rc = unwind_init(&j->unwind, &j->elf);
	if (!rc)
		rc = collect(j);
	if (!rc)
		rc = make_rows(j);
	if (!rc)
		rc = tell_rows(j);
	if (!rc)
		rc = add_lines(j);
	if (!rc)
		rc = compose(j, &j->set, &r);
	job_release(j);
	if (rc)
		return rc;
	r.lines_later = j->lines_later;
	*out = r;
	return 0;
}

static int run(struct source *src, const struct index_finder *finder, struct index_result *out,
	       struct err *e)
{
	static const struct index_finder nobody;
	struct job j = {.finder = finder ? finder : &nobody,
			.lines_wanted = finder ? finder->lines : INDEX_LINES_SOON,
			.debug = DEBUGFILE_INIT,
			.started_cpu_ns = clock_cpu_ns()};
	int rc = elf_open(&j.elf, src, e);

	if (rc)
		return rc;
	rc = job_run(&j, out);
	elf_release(&j.elf);
	return rc ? err_set(e, rc, EXIT_RUNTIME, "cannot index the file: %s", strerror(-rc)) : 0;
}

int indexer_run_fd(int fd, const struct index_finder *finder, struct index_result *out,
		   struct err *e)
{
	uint64_t hash = HASH_SEED, left = SOURCE_BUDGET;
	struct source src;
	int rc = source_init_fd(&src, fd, &hash, &left);

	if (rc)
		return err_set(e, rc, EXIT_RUNTIME, "cannot read the file: %s",
			       rc == -EINVAL ? "not a regular file" : strerror(-rc));
	return run(&src, finder, out, e);
}

int indexer_run_bytes(const void *data, size_t len, const struct index_finder *finder,
		      struct index_result *out, struct err *e)
{
	uint64_t hash = HASH_SEED, left = SOURCE_BUDGET;
	struct source src;

	source_init_bytes(&src, data, len, &hash, &left);
	return run(&src, finder, out, e);
}
