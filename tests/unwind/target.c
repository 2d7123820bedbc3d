/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unwind/target.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/image/image.h"

static bool copy_in(pid_t pid, uint64_t addr, void *to, size_t len)
{
	struct iovec here = {to, len},
		     there = {(void *)(uintptr_t)addr, len}; /* NOLINT: their address */

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)len;
}

static void file_index(struct target *t, struct target_file *f, const char *elf)
{
	char out[600];
	struct err e = {0};
	const void *data;
	size_t size;
	int status = -1, fd;
	pid_t pid;

	snprintf(out, sizeof(out), "%s/%d.idx", t->dir, t->n_files);
	pid = fork();
	if (!pid) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 1);
		execl(t->indexer, t->indexer, "-o", out, elf, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	fd = status ? -1 : open(out, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || image_open_fd(fd, &f->image, &e)) {
		fprintf(stderr, "stepper: no index of %s\n", f->path);
		f->image = NULL;
	} else if (image_unwind(f->image, &data, &size)) {
		f->has_rows = !unwind_section_open(&f->rows, data, size);
	}
	if (fd >= 0)
		close(fd);
}

/* The vDSO is no file: its memory is one. */
static void vdso_index(struct target *t, struct target_file *f, const struct target_map *m)
{
	static char bytes[65536];
	size_t len = m->end - m->start;
	char elf[600];
	FILE *out;

	snprintf(elf, sizeof(elf), "%s/vdso.so", t->dir);
	out = fopen(elf, "we");
	if (out && len <= sizeof(bytes) && copy_in(t->pid, m->start, bytes, len))
		fwrite(bytes, 1, len, out);
	if (out)
		fclose(out);
	file_index(t, f, elf);
}

static int file_of(struct target *t, const char *path, const struct target_map *m)
{
	struct target_file *f;

	for (int i = 0; i < t->n_files; i++)
		if (!strcmp(t->file[i].path, path))
			return i;
	if (t->n_files == TARGET_FILES)
		return -1;
	f = &t->file[t->n_files];
	memset(f, 0, sizeof(*f));
	snprintf(f->path, sizeof(f->path), "%s", path);
	if (!strcmp(path, "[vdso]"))
		vdso_index(t, f, m);
	else
		file_index(t, f, path);
	return t->n_files++;
}

void target_maps(struct target *t)
{
	char name[64], line[1024];
	FILE *in;

	snprintf(name, sizeof(name), "/proc/%d/maps", t->pid);
	in = fopen(name, "re");
	t->n_maps = 0;
	while (in && fgets(line, sizeof(line), in) && t->n_maps < TARGET_MAPS) {
		struct target_map *m = &t->map[t->n_maps];
		char rights[8] = "", path[512] = "";

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511[^\n]",
			   &m->start, &m->end, rights, &m->offset, path) < 4)
			continue;
		m->exec = rights[2] == 'x';
		m->file = -1;
		t->n_maps++;
		if (m->exec && (path[0] == '/' || !strcmp(path, "[vdso]")))
			m->file = file_of(t, path, m);
	}
	if (in)
		fclose(in);
}

const struct target_map *target_map_of(const struct target *t, uint64_t addr)
{
	for (int i = 0; i < t->n_maps; i++)
		if (addr >= t->map[i].start && addr < t->map[i].end)
			return &t->map[i];
	return NULL;
}

void target_stack(struct target *t, uint64_t sp)
{
	const struct target_map *m = target_map_of(t, sp);

	t->stack_at = sp & ~7ull;
	t->stack_len = sizeof(t->stack);
	if (m && m->end - t->stack_at < t->stack_len)
		t->stack_len = m->end - t->stack_at;
	if (!copy_in(t->pid, t->stack_at, t->stack, t->stack_len))
		t->stack_len = 0;
}

bool target_read(void *target, uint64_t addr, uint64_t *value)
{
	struct target *t = target;
	uint64_t at = addr - t->stack_at;

	if (at < t->stack_len && t->stack_len - at >= 8) {
		memcpy(value, (const char *)t->stack + at, 8);
		return true;
	}
	return copy_in(t->pid, addr, value, 8);
}

bool target_where(void *target, uint64_t addr, struct unwind_where *out)
{
	struct target *t = target;
	const struct target_map *m = target_map_of(t, addr);
	const struct target_file *f;
	uint64_t vaddr;

	if (!m || !m->exec)
		return false;
	*out = (struct unwind_where){
		.start = m->start, .end = m->end, .state = UNWIND_ROWS_NO_FILE};
	if (m->file < 0)
		return true;
	f = &t->file[m->file];
	out->state = UNWIND_ROWS_REFUSED;
	if (f->has_rows && image_offset_to_vaddr(f->image, m->offset, &vaddr)) {
		out->state = UNWIND_ROWS_READY;
		out->rows = f->rows;
		out->to_vaddr = vaddr - m->start;
	}
	return true;
}

void target_name(const struct target *t, uint64_t addr, char *to, size_t size)
{
	const struct target_map *m = target_map_of(t, addr);
	const struct target_file *f = m && m->file >= 0 ? &t->file[m->file] : NULL;
	struct image_symbol sym = {.name = "?"};
	uint64_t vaddr = 0;

	if (!f) {
		snprintf(to, size, "%#" PRIx64, addr);
		return;
	}
	if (f->image && image_offset_to_vaddr(f->image, m->offset, &vaddr))
		image_symbol_at(f->image, vaddr + addr - m->start, &sym);
	snprintf(to, size, "%s %s+%#" PRIx64,
		 strrchr(f->path, '/') ? strrchr(f->path, '/') + 1 : f->path, sym.name,
		 vaddr + addr - m->start - sym.addr);
}
