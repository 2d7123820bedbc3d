/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image: the reader of an image index. What is opened is checked once, then (format.h, conditions
 * 1-7), in one pass over it; after that a look-up is a binary search that cannot leave the mapping.
 * Nothing is copied but the identity.
 */
#include "schema/image/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "schema/base/cleanup.h"
#include "schema/image/checksum.h"
#include "schema/image/format.h"
#include "schema/image/inside.h"

static int damaged(struct err *e, const char *why)
{
	return err_set(e, -EBADMSG, EXIT_RUNTIME, "image index: %s", why);
}

static int header_check(const uint8_t *data, size_t len, struct image_header *h, struct err *e)
{
	if (len < sizeof(*h))
		return damaged(e, "shorter than its header");
	memcpy(h, data, sizeof(*h));
	if (memcmp(h->magic, IMAGE_MAGIC, sizeof(h->magic)))
		return damaged(e, "not an image index");
	if (h->version != IMAGE_VERSION)
		return err_set(e, -EBADMSG, EXIT_RUNTIME,
			       "image index: version %u, this program reads %u", h->version,
			       IMAGE_VERSION);
	if (h->total_size != len)
		return damaged(e, "its size is not the one it was written with");
	if (h->section_count > IMAGE_SECTIONS_MAX ||
	    sizeof(*h) + h->section_count * sizeof(struct image_section) > len)
		return damaged(e, "its section table does not fit");
	return 0;
}

/* The one section of this kind: where it lies and how many elements it has. -ENOENT: no such
 * section.
 */
static int section_find(const uint8_t *data, const struct image_header *h, uint32_t kind,
			size_t stride, const void **out, size_t *count)
{
	const size_t table_end = sizeof(*h) + h->section_count * sizeof(struct image_section);
	bool found = false;

	for (uint32_t i = 0; i < h->section_count; i++) {
		struct image_section s;

		memcpy(&s, data + sizeof(*h) + i * sizeof(s), sizeof(s));
		if (s.kind != kind)
			continue;
		if (found || s.stride != stride || s.offset < table_end ||
		    s.offset > h->total_size || s.size > h->total_size - s.offset || s.offset % 8 ||
		    s.size % stride)
			return -EBADMSG;
		*out = data + s.offset;
		*count = s.size / stride;
		found = true;
	}
	return found ? 0 : -ENOENT;
}

static bool symbols_sound(const struct image *img)
{
	uint64_t end = 0;

	for (size_t i = 0; i < img->symbol_count; i++) {
		const struct image_symbol_record *s = &img->symbols[i];

		if (!s->size || s->start < end || s->name >= img->strings_size ||
		    s->back > s->start)
			return false;
		end = (uint64_t)s->start + s->size;
	}
	return end <= UINT64_MAX - img->symbol_base;
}

static bool runs_find(const uint8_t *data, const struct image_header *h, uint32_t kind,
		      struct image_runs_part *out)
{
	const void *p = NULL;
	size_t size = 0;

	return !section_find(data, h, kind, 1, &p, &size) && image_runs_load(out, p, size);
}

/* All three sections, or none of them. */
static int lines_load(struct image *img, const uint8_t *data, const struct image_header *h,
		      struct err *e)
{
	const void *p = NULL;
	int rc = section_find(data, h, IMAGE_SECTION_LINE_FILES, sizeof(*img->line_files), &p,
			      &img->line_file_count);

	if (rc == -ENOENT)
		return 0;
	img->line_files = p;
	if (rc || !runs_find(data, h, IMAGE_SECTION_LINES, &img->lines) ||
	    !runs_find(data, h, IMAGE_SECTION_INLINES, &img->inlines))
		return damaged(e, "its lines are not sound");
	return 0;
}

/* The head (format.h, condition 13) says how many bytes follow it. */
static bool unwind_fits(const uint8_t *data, size_t size)
{
	uint32_t pages, rules, exts, rows;

	if (size < IMAGE_UNWIND_HEAD)
		return false;
	memcpy(&pages, data + 12, 4);
	memcpy(&rules, data + 16, 4);
	memcpy(&exts, data + 20, 4);
	memcpy(&rows, data + 24, 4);
	return IMAGE_UNWIND_HEAD + 8ull * pages + 8ull * rules + 16ull * exts +
		       8 * ((rows + 1ull) / 2) ==
	       size;
}

static int unwind_load(struct image *img, const uint8_t *data, const struct image_header *h,
		       struct err *e)
{
	int rc = section_find(data, h, IMAGE_SECTION_UNWIND, 1, &img->unwind, &img->unwind_size);

	if (rc == -ENOENT)
		return 0;
	if (rc || !unwind_fits(img->unwind, img->unwind_size))
		return damaged(e, "its unwind rows do not fit");
	return 0;
}

static int go_load(struct image *img, const uint8_t *data, const struct image_header *h,
		   struct err *e)
{
	const void *p = NULL;
	size_t n = 0;
	int rc = section_find(data, h, IMAGE_SECTION_GO, sizeof(*img->go), &p, &n);

	if (rc == -ENOENT)
		return 0;
	if (rc || n != 1)
		return damaged(e, "no sound part for Go");
	img->go = p;
	return 0;
}

static bool tls_sound(const struct image_tls_site *s)
{
	bool regs = s->args[0] < 16 && s->args[1] < 16 && s->args[2] < 16 &&
		    (s->args[3] < 16 || s->args[3] == IMAGE_TLS_NO_REG) &&
		    (s->check_reg[0] < 16 || s->check_reg[0] == IMAGE_TLS_NO_REG) &&
		    (s->check_reg[1] < 16 || s->check_reg[1] == IMAGE_TLS_NO_REG);

	for (unsigned i = 0; i < 2; i++)
		if (s->value[i].reg > 15 || s->value[i].place > IMAGE_TLS_NUMBER ||
		    (s->value[i].bytes != 4 && s->value[i].bytes != 8 && s->value[i].bytes))
			return false;
	return s->role <= IMAGE_TLS_FORGET && s->length < 16 && s->when <= IMAGE_TLS_NOT_TAKEN &&
	       s->condition < 16 && s->operation >= IMAGE_TLS_READ &&
	       s->operation <= IMAGE_TLS_WRITE && s->result >= IMAGE_TLS_LENGTH &&
	       s->result <= IMAGE_TLS_RECORD && (s->role != IMAGE_TLS_ENTRY || regs) &&
	       (s->role != IMAGE_TLS_FORGET || s->args[0] < 16) &&
	       (s->role == IMAGE_TLS_BLIND || s->length);
}

static int tls_load(struct image *img, const uint8_t *data, const struct image_header *h,
		    struct err *e)
{
	const void *p = NULL;
	int rc = section_find(data, h, IMAGE_SECTION_TLS, sizeof(*img->tls), &p, &img->tls_count);

	if (rc == -ENOENT)
		return 0;
	if (rc || img->tls_count > IMAGE_TLS_SITES)
		return damaged(e, "no sound part for TLS");
	img->tls = p;
	for (size_t i = 0; i < img->tls_count; i++)
		if (!tls_sound(&img->tls[i]))
			return damaged(e, "a site for TLS that makes no sense");
	return 0;
}

static int parts_load(struct image *img, const uint8_t *data, const struct image_header *h,
		      struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; i < IMAGE_PARTS && (!rc || rc == -ENOENT); i++)
		rc = section_find(data, h, IMAGE_PART_FIRST + i, 1, &img->parts[i],
				  &img->part_sizes[i]);
	return rc && rc != -ENOENT ? damaged(e, "no sound part for a runtime") : 0;
}

static int ident_load(struct image *img, const uint8_t *data, const struct image_header *h,
		      struct err *e)
{
	const struct image_ident_record *id = NULL;
	const void *p = NULL;
	size_t n = 0;

	if (section_find(data, h, IMAGE_SECTION_IDENT, sizeof(*id), &p, &n) || n != 1)
		return damaged(e, "no sound identity");
	id = p;
	if (id->build_id_len > sizeof(id->build_id))
		return damaged(e, "build-id too long");
	memcpy(img->ident.build_id, id->build_id, sizeof(id->build_id));
	img->ident.build_id_len = id->build_id_len;
	img->ident.content_hash = id->content_hash;
	img->ident.machine = id->machine;
	img->ident.go = id->flags & IMAGE_IDENT_GO;
	img->ident.from_debug_file = id->flags & IMAGE_IDENT_DEBUG_FILE;
	img->ident.lines_later = id->flags & IMAGE_IDENT_LINES_LATER;
	img->symbol_base = id->symbol_base;
	img->lines_note = id->lines_note;
	return 0;
}

static int segments_load(struct image *img, const uint8_t *data, const struct image_header *h,
			 struct err *e)
{
	const void *p = NULL;

	if (section_find(data, h, IMAGE_SECTION_SEGMENTS, sizeof(*img->segments), &p,
			 &img->segment_count))
		return damaged(e, "no sound segment table");
	img->segments = p;
	return 0;
}

static int names_load(struct image *img, const uint8_t *data, const struct image_header *h,
		      struct err *e)
{
	const void *p = NULL;

	if (section_find(data, h, IMAGE_SECTION_SYMBOLS, sizeof(*img->symbols), &p,
			 &img->symbol_count))
		return damaged(e, "no sound symbol table");
	img->symbols = p;
	if (section_find(data, h, IMAGE_SECTION_STRINGS, 1, &p, &img->strings_size) ||
	    !img->strings_size)
		return damaged(e, "no sound string table");
	img->strings = p;
	if (img->strings[img->strings_size - 1])
		return damaged(e, "its last string has no end");
	return symbols_sound(img) ? 0 : damaged(e, "its symbols are not in order");
}

/* What is opened of an index, and what of it is hashed. */
enum scope { ALL, ALL_SOUND, ROWS };

static const uint32_t rows_kinds =
	1u << IMAGE_SECTION_IDENT | 1u << IMAGE_SECTION_SEGMENTS | 1u << IMAGE_SECTION_UNWIND |
	1u << IMAGE_SECTION_PYTHON | 1u << IMAGE_SECTION_PHP | 1u << IMAGE_SECTION_RUBY |
	1u << IMAGE_SECTION_HOTSPOT | 1u << IMAGE_SECTION_V8 | 1u << IMAGE_SECTION_PERL |
	1u << IMAGE_SECTION_BEAM | 1u << IMAGE_SECTION_TLS | 1u << IMAGE_SECTION_GO;

static int sections_load(struct image *img, const uint8_t *data, const struct image_header *h,
			 enum scope scope, struct err *e)
{
	int rc = ident_load(img, data, h, e);

	if (!rc)
		rc = segments_load(img, data, h, e);
	if (!rc)
		rc = unwind_load(img, data, h, e);
	if (!rc)
		rc = parts_load(img, data, h, e);
	if (!rc)
		rc = tls_load(img, data, h, e);
	if (!rc)
		rc = go_load(img, data, h, e);
	if (rc || scope == ROWS)
		return rc;
	rc = names_load(img, data, h, e);
	if (!rc)
		rc = lines_load(img, data, h, e);
	return rc;
}

static int open_bytes(const void *data, size_t len, enum scope scope, struct image **out,
		      struct err *e)
{
	cleanup_free struct image *img = NULL;
	struct image_header h;
	int rc;

	if ((uintptr_t)data % 8)
		return damaged(e, "its bytes are not 8-aligned in memory");
	rc = header_check(data, len, &h, e);
	if (!rc && scope != ALL_SOUND &&
	    !image_checksums_right(data, len, scope == ROWS ? rows_kinds : UINT32_MAX))
		rc = damaged(e, "wrong checksum");
	if (rc)
		return rc;
	img = calloc(1, sizeof(*img));
	if (!img)
		return err_set(e, -ENOMEM, EXIT_RUNTIME, "image index: out of memory");
	rc = sections_load(img, data, &h, scope, e);
	if (rc)
		return rc;
	*out = take_ptr(img);
	return 0;
}

int image_open_bytes(const void *data, size_t len, struct image **out, struct err *e)
{
	return open_bytes(data, len, ALL, out, e);
}

static int open_fd(int fd, enum scope scope, struct image **out, struct err *e)
{
	struct stat st;
	void *map;
	int rc;

	if (fstat(fd, &st))
		return err_set(e, -errno, EXIT_RUNTIME, "image index: cannot stat: %s",
			       strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct image_header))
		return damaged(e, "shorter than its header");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return err_set(e, -errno, EXIT_RUNTIME, "image index: cannot map: %s",
			       strerror(errno));
	rc = open_bytes(map, (size_t)st.st_size, scope, out, e);
	if (rc) {
		munmap(map, (size_t)st.st_size);
		return rc;
	}
	if (scope != ROWS) /* all of it was read once: later reads hit the page cache */
		madvise(map, (size_t)st.st_size, MADV_DONTNEED);
	(*out)->map = map;
	(*out)->map_size = (size_t)st.st_size;
	(*out)->dev = st.st_dev;
	(*out)->ino = st.st_ino;
	return 0;
}

int image_open_fd(int fd, struct image **out, struct err *e)
{
	return open_fd(fd, ALL, out, e);
}

int image_open_sound_fd(int fd, struct image **out, struct err *e)
{
	return open_fd(fd, ALL_SOUND, out, e);
}

int image_open_rows_fd(int fd, struct image **out, struct err *e)
{
	return open_fd(fd, ROWS, out, e);
}

bool image_is_of(const struct image *img, int fd)
{
	struct stat st;

	return img->map && !fstat(fd, &st) && st.st_dev == img->dev && st.st_ino == img->ino;
}

void image_close(struct image *img)
{
	if (!img)
		return;
	if (img->map)
		munmap(img->map, img->map_size);
	free(img);
}

const struct image_ident *image_ident(const struct image *img)
{
	return &img->ident;
}

bool image_offset_to_vaddr(const struct image *img, uint64_t offset, uint64_t *vaddr)
{
	const struct image_segment *best = NULL;

	/* Two segments may share a page of the file; what runs is in the executable one. */
	for (size_t i = 0; i < img->segment_count; i++) {
		const struct image_segment *s = &img->segments[i];

		if (offset < s->offset || offset - s->offset >= s->file_size)
			continue;
		if (!best ||
		    ((s->flags & IMAGE_SEGMENT_EXEC) && !(best->flags & IMAGE_SEGMENT_EXEC)))
			best = s;
	}
	if (!best)
		return false;
	*vaddr = best->vaddr + (offset - best->offset);
	return true;
}

static void symbol_fill(const struct image *img, const struct image_symbol_record *s,
			struct image_symbol *out)
{
	/* The file could be changed under the mapping: a name is looked at again, its end was
	 * checked. */
	out->name = s->name < img->strings_size ? img->strings + s->name : "";
	out->addr = img->symbol_base + (s->start - s->back);
	out->size = (uint64_t)s->back + s->size;
}

bool image_symbol_at(const struct image *img, uint64_t vaddr, struct image_symbol *out)
{
	const uint64_t want = vaddr - img->symbol_base;
	size_t lo = 0, hi = img->symbol_count;

	if (vaddr < img->symbol_base)
		return false;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (img->symbols[mid].start <= want)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || want - img->symbols[lo - 1].start >= img->symbols[lo - 1].size)
		return false;
	symbol_fill(img, &img->symbols[lo - 1], out);
	return true;
}

size_t image_symbol_count(const struct image *img)
{
	return img->symbol_count;
}

bool image_symbol_get(const struct image *img, size_t i, struct image_symbol *out)
{
	if (i >= img->symbol_count)
		return false;
	symbol_fill(img, &img->symbols[i], out);
	return true;
}

size_t image_exec_segments(const struct image *img, struct image_exec *out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < img->segment_count && n < max; i++) {
		const struct image_segment *s = &img->segments[i];

		if (s->flags & IMAGE_SEGMENT_EXEC && s->file_size)
			out[n++] = (struct image_exec){
				.vaddr = s->vaddr, .offset = s->offset, .size = s->file_size};
	}
	return n;
}

/* How many bytes [a, a + an) and [b, b + bn) have in common. Sizes that run over the end of all
 * addresses are cut. */
static uint64_t shared_bytes(uint64_t a, uint64_t an, uint64_t b, uint64_t bn)
{
	uint64_t a_end = an > UINT64_MAX - a ? UINT64_MAX : a + an;
	uint64_t b_end = bn > UINT64_MAX - b ? UINT64_MAX : b + bn;
	uint64_t from = a > b ? a : b, to = a_end < b_end ? a_end : b_end;

	return from < to ? to - from : 0;
}

bool image_exec_vaddr(const struct image_exec *segments, size_t n, uint64_t offset, uint64_t len,
		      uint64_t *vaddr)
{
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t shared = shared_bytes(segments[i].offset, segments[i].size, offset, len);

		if (shared <= most)
			continue;
		most = shared;
		*vaddr = segments[i].vaddr + (offset - segments[i].offset);
	}
	return most > 0;
}

bool image_unwind(const struct image *img, const void **data, size_t *size)
{
	if (!img->unwind)
		return false;
	*data = img->unwind;
	*size = img->unwind_size;
	return true;
}

bool image_part(const struct image *img, uint32_t kind, const void **data, size_t *size)
{
	uint32_t i = kind - IMAGE_PART_FIRST;

	if (i >= IMAGE_PARTS || !img->parts[i])
		return false;
	*data = img->parts[i];
	*size = img->part_sizes[i];
	return true;
}
