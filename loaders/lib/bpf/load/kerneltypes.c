/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/kerneltypes.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/log.h"
#include "schema/base/file/subdir.h"
#include "schema/base/mem.h"
#include "schema/base/file/owner.h"

#define FILE_MAX (4u << 20)

/* ---- which ---- */

struct pick {
	const struct btf *kernel;
	uint32_t *todo, n_todo; /* ids of kernel types, some of them still to be followed */
	uint32_t *as; /* by kernel type id: 0 not wanted, 1 wanted; then its id in the file */
};

static void want(struct pick *p, uint32_t id)
{
	if (!id || p->as[id])
		return;
	p->as[id] = 1;
	p->todo[p->n_todo++] = id;
}

/* Want what a type contains or is another name for. */
static void want_parts(struct pick *p, const struct btf_type *t)
{
	if (btf_is_composite(t)) {
		for (uint16_t i = 0; i < btf_vlen(t); i++)
			want(p, btf_members(t)[i].type);
	} else if (btf_is_array(t)) {
		want(p, btf_array(t)->type);
		want(p, btf_array(t)->index_type);
	} else if (btf_is_mod(t) || btf_is_typedef(t)) {
		want(p, t->type);
	}
}

static bool is_held(const struct btf_type *t)
{
	return btf_is_composite(t) || btf_is_any_enum(t) || btf_is_typedef(t) || btf_is_int(t) ||
	       btf_is_fwd(t) || btf_is_float(t);
}

/* "task_struct" of task_struct___maps. */
static uint64_t name_hash(const struct btf *btf, const struct btf_type *t)
{
	const char *name = btf__name_by_offset(btf, t->name_off), *flavour = strstr(name, "___");

	return hash_bytes(HASH_SEED, name, flavour ? (size_t)(flavour - name) : strlen(name));
}

static void want_named(struct pick *p, const struct btf *programs)
{
	struct idmap names = {0};
	uint64_t one;

	for (uint32_t id = 1; id < btf__type_cnt(programs); id++) {
		const struct btf_type *t = btf__type_by_id(programs, id);

		if (t->name_off && is_held(t))
			idmap_set(&names, name_hash(programs, t), 1);
	}
	for (uint32_t id = 1; id < btf__type_cnt(p->kernel); id++) {
		const struct btf_type *t = btf__type_by_id(p->kernel, id);

		if (t->name_off && is_held(t) && idmap_get(&names, name_hash(p->kernel, t), &one))
			want(p, id);
	}
	idmap_release(&names);
}

/* ---- the file's own ids ---- */

static void renumber(const struct pick *p, struct btf_type *t)
{
	if (btf_is_composite(t)) {
		for (uint16_t i = 0; i < btf_vlen(t); i++)
			btf_members(t)[i].type = p->as[btf_members(t)[i].type];
	} else if (btf_is_array(t)) {
		btf_array(t)->type = p->as[btf_array(t)->type];
		btf_array(t)->index_type = p->as[btf_array(t)->index_type];
	} else if (btf_is_ptr(t)) {
		t->type = 0;
	} else if (btf_is_mod(t) || btf_is_typedef(t)) {
		t->type = p->as[t->type];
	}
}

/* Functions have no name as members, only in what a pointer or a typedef points to: they are left
 * out. */
static bool put(struct pick *p, struct btf *to)
{
	for (uint32_t id = 1; id < btf__type_cnt(p->kernel); id++) {
		const struct btf_type *t = btf__type_by_id(p->kernel, id);
		int as = p->as[id] && !btf_is_func_proto(t) ? btf__add_type(to, p->kernel, t) : 0;

		if (as < 0)
			return false;
		p->as[id] = (uint32_t)as;
	}
	for (uint32_t id = 1; id < btf__type_cnt(to); id++)
		renumber(p, (struct btf_type *)btf__type_by_id(to, id));
	return true;
}

struct btf *kerneltypes_pick(const struct btf *kernel, const struct btf *programs)
{
	uint32_t n = btf__type_cnt(kernel);
	struct pick p = {.kernel = kernel,
			 .todo = mem_array(n, sizeof(uint32_t)),
			 .as = mem_array(n, sizeof(uint32_t))};
	struct btf *to = btf__new_empty();

	want_named(&p, programs);
	while (p.n_todo)
		want_parts(&p, btf__type_by_id(kernel, p.todo[--p.n_todo]));
	if (to && !put(&p, to)) {
		btf__free(to);
		to = NULL;
	}
	free(p.todo);
	free(p.as);
	return to;
}

/* ---- the file ---- */

/* 0: this kernel has no id. */
static uint64_t key_of(const void *elf, size_t size)
{
	cleanup_fd int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
	struct utsname un;
	char notes[4096];
	ssize_t n = fd < 0 ? -1 : read(fd, notes, sizeof(notes));

	if (n <= 0 || uname(&un))
		return 0;
	return hash_bytes(
		hash_str(hash_str(hash_bytes(HASH_SEED, notes, (size_t)n), un.release), un.version),
		elf, size);
}

static bool is_sound(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	cleanup_free char *bytes = NULL;
	struct stat st;
	uint64_t hash;
	size_t len;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 022) || (size_t)st.st_size <= sizeof(hash) ||
	    (size_t)st.st_size > FILE_MAX)
		return false;
	len = (size_t)st.st_size;
	bytes = mem_alloc(len);
	if (pread(fd, bytes, len, 0) != (ssize_t)len)
		return false;
	len -= sizeof(hash);
	memcpy(&hash, bytes + len, sizeof(hash));
	futimens(fd, NULL); /* images/ drops the least recently used files first */
	return hash == hash_bytes(HASH_SEED, bytes, len);
}

static int keep(const struct btf *types, const char *store_dir, const char *path)
{
	uint32_t size;
	const void *bytes = btf__raw_data(types, &size);
	uint64_t hash;
	char tmp[64];
	cleanup_fd int dir = -1, fd = -1;

	if (!bytes || size > FILE_MAX - sizeof(hash))
		return -E2BIG;
	dir = subdir_open(store_dir, "images");
	if (dir < 0)
		return dir;
	snprintf(tmp, sizeof(tmp), ".tmp-%d-kerneltypes", (int)getpid());
	hash = hash_bytes(HASH_SEED, bytes, size);
	fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno; /* no such folder, or it belongs to another user */
	owner_inherit_at(dir, tmp);
	if (write(fd, bytes, size) == (ssize_t)size &&
	    write(fd, &hash, sizeof(hash)) == sizeof(hash) &&
	    !renameat(dir, tmp, dir, strrchr(path, '/') + 1))
		return 0;
	unlinkat(dir, tmp, 0);
	return -EIO;
}

static int make(const void *elf, size_t size, const char *store_dir, const char *path)
{
	struct bpf_object *obj = bpf_object__open_mem(elf, size, NULL);
	struct btf *kernel = obj && bpf_object__btf(obj) ? btf__load_vmlinux_btf() : NULL;
	struct btf *types = kernel ? kerneltypes_pick(kernel, bpf_object__btf(obj)) : NULL;
	int rc = types ? keep(types, store_dir, path) : -ENOENT;

	btf__free(types);
	btf__free(kernel);
	bpf_object__close(obj);
	return rc;
}

const char *kerneltypes_path(const char *store_dir, const void *elf, size_t size,
			     char path[PATH_MAX])
{
	uint64_t key = store_dir ? key_of(elf, size) : 0;
	int rc;

	if (!key || snprintf(path, PATH_MAX, "%s/images/kerneltypes-%016llx", store_dir,
			     (unsigned long long)key) >= PATH_MAX)
		return NULL;
	if (is_sound(path))
		return path;
	rc = make(elf, size, store_dir, path);
	if (rc)
		log_debug("the kernel's types are not kept: %s", strerror(-rc));
	return rc ? NULL : path;
}

bool kerneltypes_enumerator(const struct btf *kernel, const char *name, uint32_t *value)
{
	for (uint32_t i = 1; i < btf__type_cnt(kernel); i++) {
		const struct btf_type *t = btf__type_by_id(kernel, i);
		const struct btf_enum *e = btf_enum(t);

		for (uint32_t k = 0; btf_is_enum(t) && k < btf_vlen(t); k++)
			if (!strcmp(btf__name_by_offset(kernel, e[k].name_off), name)) {
				*value = (uint32_t)e[k].val;
				return true;
			}
	}
	return false;
}
