/* SPDX-License-Identifier: Apache-2.0 */
/* kallsyms_kept: see the header. */
#include "loaders/lib/host/names/kallsyms_kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/names/kallsyms_parts.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define NAME "images/kallsyms"

_Static_assert(sizeof(struct kallsyms_head) == 120, "no padding");

struct module_row {
	uint64_t base, name;
};

/* ---- pack ---- */

static bool is_passing(const char *module)
{
	return !strcmp(module, "bpf") || !strncmp(module, "__builtin__", 11);
}

static bool is_passing_at(const struct kallsyms *k, size_t i)
{
	return is_passing(k->modules[k->module[i]].name);
}

/* The mark or name that an entry is kept with (rule 2). */
static uint32_t kept_name(const struct kallsyms *k, size_t i)
{
	bool last =
		i + 1 == k->n || k->module[i + 1] != k->module[i] || k->name[i + 1] == NAME_MARKER;
	bool open = i + 1 < k->n && is_passing_at(k, i + 1);

	return open || (k->module[i] && last) ? NAME_MARKER : k->name[i];
}

static void pad(struct strbuf *out)
{
	while (out->len % 8)
		strbuf_addch(out, 0);
}

static void pack_entries(const struct kallsyms *k, struct strbuf *out, struct kallsyms_head *h)
{
	for (size_t i = 0; i < k->n; i++) {
		uint64_t addr = kallsyms_addr(k, i);
		uint32_t rel = (uint32_t)(addr - h->first);

		if (!is_passing_at(k, i))
			strbuf_add(out, h->flags & KALLSYMS_WIDE ? (void *)&addr : &rel,
				   h->flags & KALLSYMS_WIDE ? 8 : 4);
	}
	pad(out);
	for (size_t i = 0; i < k->n; i++) {
		uint32_t name = kept_name(k, i);

		if (is_passing_at(k, i))
			continue;
		strbuf_add(out, &name, sizeof(name));
		h->n++;
		h->functions += name != NAME_MARKER;
	}
	pad(out);
	for (size_t i = 0; i < k->n; i++)
		if (!is_passing_at(k, i))
			strbuf_add(out, &k->module[i], sizeof(k->module[i]));
	pad(out);
}

static uint64_t first_kept(const struct kallsyms *k)
{
	for (size_t i = 0; i < k->n; i++)
		if (!is_passing_at(k, i))
			return kallsyms_addr(k, i);
	return 0;
}

void kallsyms_pack(const struct kallsyms *k, uint64_t key, struct strbuf *out)
{
	struct kallsyms_head h = {.magic = KALLSYMS_MAGIC,
				  .key = key,
				  .first = first_kept(k),
				  .text = k->text,
				  .etext = k->etext,
				  .orc = k->orc,
				  .flags = k->rel ? 0 : KALLSYMS_WIDE,
				  .n_modules = (uint32_t)k->n_modules};
	struct strbuf names cleanup_strbuf = STRBUF_INIT;

	strbuf_reset(out);
	strbuf_add(out, &h, sizeof(h));
	pack_entries(k, out, &h);
	for (size_t i = 0; i < k->n_modules; i++) {
		struct module_row row = {k->modules[i].base, k->pool_len + names.len};

		strbuf_add(out, &row, sizeof(row));
		strbuf_add(&names, k->modules[i].name, strlen(k->modules[i].name) + 1);
	}
	h.pool_bytes = k->pool_len + names.len;
	strbuf_add(out, k->pool, k->pool_len);
	strbuf_add(out, names.buf, names.len);
	memcpy(out->buf, &h, sizeof(h));
	h.hash = hash_bytes(HASH_SEED, out->buf + 16, out->len - 16);
	memcpy(out->buf, &h, sizeof(h));
}

/* ---- unpack ---- */

static size_t padded(size_t n)
{
	return (n + 7) / 8 * 8;
}

/* Each name within the pool, each module known: what is found can be read. */
static bool is_sound(const struct kallsyms *k)
{
	if (!k->pool_len || k->pool[k->pool_len - 1] || !k->n_modules ||
	    (k->n && kallsyms_addr(k, 0) != k->first))
		return false;
	for (size_t i = 0; i < k->n; i++)
		if ((k->name[i] != NAME_MARKER && (k->name[i] & ~NAME_PFX) >= k->pool_len) ||
		    k->module[i] >= k->n_modules)
			return false;
	return true;
}

static int unpack_modules(struct kallsyms *k, const struct module_row *rows, size_t n)
{
	k->modules = mem_array(n ? n : 1, sizeof(*k->modules));
	k->n_modules = n;
	for (size_t i = 0; i < n; i++) {
		if (rows[i].name >= k->pool_len)
			return -EBADMSG;
		k->modules[i] = (struct kallsyms_module){k->pool + rows[i].name, rows[i].base};
	}
	return 0;
}

int kallsyms_unpack(const void *data, size_t len, uint64_t key, struct kallsyms **out)
{
	const char *at = data;
	struct kallsyms_head h;
	struct kallsyms *k;
	size_t wide, names, modules, rows;

	if (len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, data, sizeof(h));
	if (memcmp(h.magic, KALLSYMS_MAGIC, sizeof(h.magic)) || h.key != key)
		return -ESTALE;
	wide = padded((size_t)h.n * (h.flags & KALLSYMS_WIDE ? 8 : 4));
	names = padded((size_t)h.n * 4);
	modules = padded((size_t)h.n * 2);
	rows = (size_t)h.n_modules * sizeof(struct module_row);
	if (h.n_modules > UINT16_MAX || h.pool_bytes > KALLSYMS_FILE_MAX ||
	    len != sizeof(h) + wide + names + modules + rows + h.pool_bytes)
		return -EBADMSG;
	k = mem_alloc(sizeof(*k));
	at += sizeof(h);
	if (h.flags & KALLSYMS_WIDE)
		k->wide = (void *)(uintptr_t)at;
	else
		k->rel = (void *)(uintptr_t)at;
	k->name = (void *)(uintptr_t)(at + wide);
	k->module = (void *)(uintptr_t)(at + wide + names);
	k->pool = (char *)(uintptr_t)(at + wide + names + modules + rows);
	k->pool_len = k->pool_cap = h.pool_bytes;
	k->n = h.n;
	k->functions = h.functions;
	k->first = h.first;
	k->text = h.text;
	k->etext = h.etext;
	k->orc = h.orc;
	k->borrowed = true;
	if (unpack_modules(k, (const void *)(at + wide + names + modules), h.n_modules) ||
	    !is_sound(k)) {
		kallsyms_free(k);
		return -EBADMSG;
	}
	*out = k;
	return 0;
}

/* ---- the file ---- */

/* A line of /proc/modules: NAME SIZE USES USERS STATE ADDRESS [TAINT]. Uses and users change all
 * the time. */
static uint64_t hash_modules(uint64_t key)
{
	cleanup_file FILE *f = fopen("/proc/modules", "re");
	char line[4096], name[64], address[32];
	unsigned long size;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %lu %*s %*s %*s %31s", name, &size, address) == 3)
			key = hash_str(hash_u64(hash_str(key, name), size), address);
	return key;
}

/* 0: unknown. */
static uint64_t key_now(void)
{
	cleanup_file FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	char boot[64];

	if (!f || !fgets(boot, sizeof(boot), f))
		return 0;
	return hash_modules(hash_str(HASH_SEED, boot));
}

static int open_kept(const char *store_dir, struct stat *st)
{
	cleanup_fd int fd = -1;
	char path[4096];

	if ((size_t)snprintf(path, sizeof(path), "%s/" NAME, store_dir) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, st))
		return -errno;
	if (!S_ISREG(st->st_mode) || st->st_uid != geteuid() || (st->st_mode & 077) ||
	    (size_t)st->st_size < sizeof(struct kallsyms_head))
		return -EBADMSG;
	futimens(fd, NULL); /* the least used of images/ goes first */
	return take_fd(&fd);
}

int kallsyms_kept(const char *store_dir, struct kallsyms **out)
{
	uint64_t key = key_now();
	struct stat st;
	cleanup_fd int fd = key ? open_kept(store_dir, &st) : -ENOENT;
	const struct kallsyms_head *h;
	size_t len;
	void *map;
	int rc = -EBADMSG;

	if (fd < 0)
		return fd;
	len = (size_t)st.st_size;
	map = mmap(NULL, len, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	h = map;
	if (h->hash == hash_bytes(HASH_SEED, (char *)map + 16, len - 16))
		rc = kallsyms_unpack(map, len, key, out);
	if (rc) {
		munmap(map, len);
		return rc;
	}
	(*out)->kept = map;
	(*out)->kept_bytes = len;
	return 0;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n <= 0)
			return n ? -errno : -ENOSPC;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

void kallsyms_keep(const struct kallsyms *k, const char *store_dir)
{
	struct strbuf bytes cleanup_strbuf = STRBUF_INIT;
	char path[4096], tmp[4096 + 64];
	uint64_t key = key_now();
	cleanup_fd int fd = -1;
	int rc;

	if (!key || kallsyms_hidden(k) || !k->functions ||
	    (size_t)snprintf(path, sizeof(path), "%s/" NAME, store_dir) >= sizeof(path))
		return;
	snprintf(tmp, sizeof(tmp), "%s/images/.tmp-%d-kallsyms", store_dir, (int)getpid());
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return; /* no such folder, or none of ours */
	kallsyms_pack(k, key, &bytes);
	rc = write_all(fd, bytes.buf, bytes.len);
	if (!rc && rename(tmp, path))
		rc = -errno;
	if (rc) {
		log_debug("the kernel's symbols are not kept: %s", strerror(-rc));
		unlink(tmp);
	}
}
