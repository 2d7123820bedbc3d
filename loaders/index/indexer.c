/* SPDX-License-Identifier: Apache-2.0 */
/* indexer: see the header. */
#include "loaders/index/indexer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/compose.h"
#include "loaders/index/debuglink.h"
#include "loaders/index/elffile.h"
#include "loaders/index/elfsyms.h"
#include "loaders/index/gotable.h"
#include "loaders/index/minidebug.h"
#include "loaders/index/pclntab.h"
#include "loaders/index/symset.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"

#define DEBUGLINK_TRIES 16
#define DEBUG_FILE_MAX  (4ull << 30) /* bytes over which a CRC is computed */

struct job {
	struct elf_file elf;
	struct symset set;
	struct go_symbols go_symbols;
	struct image_ident_record ident;
	const struct index_finder *finder;
};

static bool same_build_id(const struct elf_file *a, const struct elf_file *b)
{
	return a->notes.build_id_len && a->notes.build_id_len == b->notes.build_id_len &&
	       !memcmp(a->notes.build_id, b->notes.build_id, a->notes.build_id_len);
}

/* The .symtab of another ELF file that stands for this one. Returns the number of its functions, or -errno. */
static long add_foreign(struct job *j, const struct source *src, bool check_build_id)
{
	struct elf_file other;
	long n = 0;

	if (elf_open(&other, src, NULL))
		return 0; /* not an ELF file: as if it were not there */
	if (other.machine == j->elf.machine && other.is64 == j->elf.is64 &&
	    (!check_build_id || same_build_id(&j->elf, &other)))
		n = elfsyms_add(&other, ELFSYMS_SYMTAB, &j->set, &j->go_symbols);
	elf_release(&other);
	return n;
}

/* ---- separate debug file ---- */

static long add_debug_by_build_id(struct job *j)
{
	cleanup_fd int fd = -1;
	struct source src;

	if (!j->finder->by_build_id || !j->elf.notes.build_id_len)
		return 0;
	fd = j->finder->by_build_id(j->finder->ctx, j->elf.notes.build_id, j->elf.notes.build_id_len);
	if (fd < 0 || source_init_fd(&src, fd, j->elf.src.hash, j->elf.src.left))
		return 0;
	return add_foreign(j, &src, true);
}

static int debuglink_read(struct job *j, struct debuglink *link)
{
	const Elf64_Shdr *s = elf_section_by_name(&j->elf, ".gnu_debuglink");
	cleanup_free void *raw = NULL;
	int rc;

	if (!s || s->sh_size > 4096)
		return -ENOENT;
	rc = elf_section_read(&j->elf, s, &raw);
	if (rc)
		return rc == -ERANGE ? -ENOENT : rc;
	return debuglink_parse(raw, s->sh_size, link) ? 0 : -ENOENT;
}

static long add_debug_by_link(struct job *j)
{
	struct debuglink link;
	int rc;

	if (!j->finder->by_debuglink)
		return 0;
	rc = debuglink_read(j, &link);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	for (uint32_t n = 0; n < DEBUGLINK_TRIES; n++) {
		cleanup_fd int fd = j->finder->by_debuglink(j->finder->ctx, link.name, n);
		struct source src;
		uint32_t crc;

		if (fd < 0)
			return 0;
		if (source_init_fd(&src, fd, j->elf.src.hash, j->elf.src.left) ||
		    source_crc32(&src, DEBUG_FILE_MAX, &crc) || crc != link.crc)
			continue;
		return add_foreign(j, &src, false);
	}
	return 0;
}

static long add_minidebug(struct job *j)
{
	const Elf64_Shdr *s = elf_section_by_name(&j->elf, ".gnu_debugdata");
	cleanup_free void *packed = NULL;
	cleanup_free void *data = NULL;
	struct source src;
	size_t len = 0;
	int rc;

	if (!s)
		return 0;
	rc = elf_section_read(&j->elf, s, &packed);
	if (rc)
		return rc == -ERANGE || rc == -EFBIG ? 0 : rc;
	if (minidebug_unpack(packed, s->sh_size, &data, &len))
		return 0;
	source_init_bytes(&src, data, len, j->elf.src.hash, j->elf.src.left);
	return add_foreign(j, &src, false);
}

/* ---- Go ---- */

static int add_go(struct job *j)
{
	struct go_table t;
	int rc = go_table_find(&j->elf, &j->go_symbols, &t);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	for (uint32_t i = 0; i < t.tab.func_count && !rc; i++) {
		struct pclntab_func f;

		if (pclntab_func(&t.tab, t.text, i, &f))
			rc = symset_add(&j->set, &(struct symset_symbol){.addr = f.start, .size = f.end - f.start,
									 .name = f.name, .kind = SYMSET_GO});
	}
	symset_keep(&j->set, take_ptr(t.bytes));
	go_table_release(&t);
	j->ident.flags |= IMAGE_IDENT_GO;
	return rc == -ENOSPC ? 0 : rc;
}

/* ---- all of it ---- */

static int collect(struct job *j)
{
	long n = elfsyms_add(&j->elf, ELFSYMS_SYMTAB, &j->set, &j->go_symbols);

	if (n == 0) {
		n = add_debug_by_build_id(j);
		if (n == 0)
			n = add_debug_by_link(j);
		if (n > 0)
			j->ident.flags |= IMAGE_IDENT_DEBUG_FILE;
	}
	if (n == 0)
		n = add_minidebug(j);
	if (n >= 0)
		n = elfsyms_add(&j->elf, ELFSYMS_DYNSYM, &j->set, &j->go_symbols);
	if (n >= 0)
		n = elfsyms_add_plt(&j->elf, &j->set);
	if (n >= 0)
		n = add_go(j);
	return n < 0 ? (int)n : 0;
}

static void key_format(const struct image_ident_record *id, char *key)
{
	size_t at = 0;

	for (uint32_t i = 0; i < id->build_id_len; i++)
		at += (size_t)snprintf(key + at, IMAGE_KEY_MAX - at, "%02x", id->build_id[i]);
	snprintf(key + at, IMAGE_KEY_MAX - at, "%s-%016" PRIx64, id->build_id_len ? "" : "nobuildid",
		 id->content_hash);
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
	memcpy(j->ident.build_id, j->elf.notes.build_id, sizeof(j->ident.build_id));
	j->ident.build_id_len = (uint32_t)j->elf.notes.build_id_len;
	j->ident.machine = j->elf.machine;
	rc = collect(j);
	if (!rc) {
		j->ident.content_hash = *j->elf.src.hash;
		rc = compose_index(&(struct compose_input){.elf = &j->elf, .ident = &j->ident, .set = &j->set},
				   &r.data, &r.size, &r.symbol_count);
	}
	symset_release(&j->set);
	if (rc)
		return rc;
	key_format(&j->ident, r.key);
	*out = r;
	return 0;
}

static int run(struct source *src, const struct index_finder *finder, struct index_result *out, struct err *e)
{
	static const struct index_finder nobody;
	struct job j = {.finder = finder ? finder : &nobody};
	int rc = elf_open(&j.elf, src, e);

	if (rc)
		return rc;
	rc = job_run(&j, out);
	elf_release(&j.elf);
	return rc ? err_set(e, rc, EXIT_RUNTIME, "cannot index the file: %s", strerror(-rc)) : 0;
}

int indexer_run_fd(int fd, const struct index_finder *finder, struct index_result *out, struct err *e)
{
	uint64_t hash = HASH_SEED, left = SOURCE_BUDGET;
	struct source src;
	int rc = source_init_fd(&src, fd, &hash, &left);

	if (rc)
		return err_set(e, rc, EXIT_RUNTIME, "cannot read the file: %s",
			       rc == -EINVAL ? "not a regular file" : strerror(-rc));
	return run(&src, finder, out, e);
}

int indexer_run_bytes(const void *data, size_t len, const struct index_finder *finder, struct index_result *out,
		      struct err *e)
{
	uint64_t hash = HASH_SEED, left = SOURCE_BUDGET;
	struct source src;

	source_init_bytes(&src, data, len, &hash, &left);
	return run(&src, finder, out, e);
}
