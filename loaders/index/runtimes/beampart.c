/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/runtimes/beampart.h"

#include <errno.h>

#include "loaders/index/elf/region.h"

/* "25": two digits. */
static int release_read(struct elf_file *f, uint64_t at, uint32_t *out)
{
	cleanup_region struct region r = {0};
	int rc = elf_bytes_at(f, at) >= 3 ? region_read(f, at, 3, &r) : -ENOENT;

	if (rc)
		return rc;
	if (r.len < 3 || r.bytes[0] < '0' || r.bytes[0] > '9' || r.bytes[1] < '0' ||
	    r.bytes[1] > '9' || r.bytes[2])
		return -ENOENT;
	*out = (uint32_t)(r.bytes[0] - '0') * 10 + (uint32_t)(r.bytes[1] - '0');
	return 0;
}

static int jit_read(struct elf_file *f, uint64_t at, bool *out)
{
	cleanup_region struct region r = {0};
	int rc = elf_bytes_at(f, at) >= 4 ? region_read(f, at, 4, &r) : -ENOENT;

	if (!rc)
		*out = r.len == 4 && r.bytes[0] == 1;
	return rc;
}

static void data_find(const struct elf_file *f, struct beam_layout *l)
{
	for (size_t i = 0; i < f->section_count; i++) {
		const Elf64_Shdr *s = &f->sections[i];

		if (s->sh_type != SHT_NOBITS || !(s->sh_flags & SHF_WRITE) ||
		    s->sh_flags & SHF_TLS || l->active < s->sh_addr ||
		    l->active - s->sh_addr >= s->sh_size)
			continue;
		l->data = s->sh_addr;
		l->data_end = s->sh_addr + s->sh_size;
	}
}

int beampart_make(struct elf_file *f, const struct runsyms *syms, struct beam_layout *out)
{
	struct beam_layout l = {.format = BEAM_FORMAT,
				.active = runsyms_addr(syms, RUNSYM_BEAM_ACTIVE),
				.atoms = runsyms_addr(syms, RUNSYM_BEAM_ATOMS),
				.exit = runsyms_addr(syms, RUNSYM_BEAM_EXIT),
				.frames = runsyms_addr(syms, RUNSYM_BEAM_FRAMES),
				.schedulers = {runsyms_addr(syms, RUNSYM_BEAM_SCHEDULERS),
					       runsyms_addr(syms, RUNSYM_BEAM_DIRTY_CPU),
					       runsyms_addr(syms, RUNSYM_BEAM_DIRTY_IO)}};
	uint64_t release = runsyms_addr(syms, RUNSYM_BEAM_RELEASE),
		 jit = runsyms_addr(syms, RUNSYM_BEAM_JIT);
	bool jits = false;
	int rc;

	if (!f->is64 || f->machine != EM_X86_64 || !release || !jit || !l.active || !l.atoms ||
	    !l.exit)
		return -ENOENT;
	rc = release_read(f, release, &l.version);
	if (!rc)
		rc = jit_read(f, jit, &jits);
	if (rc)
		return rc;
	data_find(f, &l);
	if (!jits || l.version < BEAMPART_OLDEST || !l.data)
		return -ENOENT;
	*out = l;
	return 0;
}
