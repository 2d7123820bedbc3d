/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/debugfile.h"

#include <errno.h>
#include <string.h>

#include "loaders/index/elf/debuglink.h"
#include "schema/base/cleanup.h"

#define DEBUGLINK_TRIES 16
#define DEBUG_FILE_MAX  (4ull << 30) /* bytes over which a CRC is computed */
#define LINK_SIZE_MAX   4096

/* Takes over `fd` if it is an ELF file of f's kind with this build-id (NULL: any). */
static bool take(struct debugfile *d, int fd, const struct elf_file *f, const uint8_t *build_id,
		 size_t len)
{
	cleanup_fd int own = fd;
	struct source src;

	if (fd < 0 || source_init_fd(&src, fd, f->src.hash, f->src.left) ||
	    elf_open_debug(&d->elf, &src, NULL))
		return false;
	if (d->elf.machine != f->machine || d->elf.is64 != f->is64 ||
	    (build_id &&
	     (d->elf.notes.build_id_len != len || memcmp(d->elf.notes.build_id, build_id, len)))) {
		elf_release(&d->elf);
		return false;
	}
	d->fd = take_fd(&own);
	d->found = true;
	return true;
}

/* A section of that name, if it is small enough for a link. NULL: none. */
static int link_read(struct elf_file *f, const char *section, void **raw, size_t *size)
{
	const Elf64_Shdr *s = elf_section_by_name(f, section);
	int rc;

	*raw = NULL;
	if (!s || s->sh_size > LINK_SIZE_MAX)
		return 0;
	rc = elf_section_read(f, s, raw);
	*size = s->sh_size;
	return rc == -ERANGE || rc == -EFBIG ? 0 : rc;
}

static int find_by_link(struct debugfile *d, struct elf_file *f, const struct index_finder *finder)
{
	cleanup_free void *raw = NULL;
	struct debuglink link;
	size_t size = 0;
	int rc = link_read(f, ".gnu_debuglink", &raw, &size);

	if (rc || !raw || !debuglink_parse(raw, size, &link))
		return rc;
	for (uint32_t n = 0; n < DEBUGLINK_TRIES; n++) {
		cleanup_fd int fd = finder->by_debuglink(finder->ctx, link.name, n);
		struct source src;
		uint32_t crc;

		if (fd < 0)
			return 0;
		if (source_init_fd(&src, fd, f->src.hash, f->src.left) ||
		    source_crc32(&src, DEBUG_FILE_MAX, &crc) || crc != link.crc)
			continue;
		take(d, take_fd(&fd), f, NULL, 0);
		return 0;
	}
	return 0;
}

int debugfile_find(struct debugfile *d, struct elf_file *f, const struct index_finder *finder)
{
	const struct note_facts *notes = &f->notes;

	if (d->looked)
		return 0;
	d->looked = true;
	if (finder->by_build_id && notes->build_id_len &&
	    take(d, finder->by_build_id(finder->ctx, notes->build_id, notes->build_id_len), f,
		 notes->build_id, notes->build_id_len))
		return 0;
	return finder->by_debuglink ? find_by_link(d, f, finder) : 0;
}

int debugfile_find_alt(struct debugfile *d, struct elf_file *f, const struct index_finder *finder)
{
	cleanup_free void *raw = NULL;
	struct debugaltlink link;
	size_t size = 0;
	int rc;

	if (d->looked)
		return 0;
	d->looked = true;
	if (!finder->by_altlink)
		return 0;
	rc = link_read(f, ".gnu_debugaltlink", &raw, &size);
	if (rc || !raw || !debugaltlink_parse(raw, size, &link))
		return rc;
	take(d, finder->by_altlink(finder->ctx, link.name, link.build_id, link.build_id_len), f,
	     link.build_id, link.build_id_len);
	return 0;
}

void debugfile_release(struct debugfile *d)
{
	if (!d->found)
		return;
	elf_release(&d->elf);
	cleanup_fd_(&d->fd);
	*d = (struct debugfile)DEBUGFILE_INIT;
}
