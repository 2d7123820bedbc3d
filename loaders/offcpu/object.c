/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/offcpu/object.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define HOUR_NS 3600000000000ull

static void paths_clear(struct objects *o)
{
	for (size_t i = 0; i < o->paths.cap; i++)
		if (o->paths.slots[i].used)
			free((void *)(uintptr_t)o->paths.slots[i].value);
	idmap_release(&o->paths);
}

void objects_release(struct objects *o)
{
	paths_clear(o);
	idmap_release(&o->told);
}

void object_format(const struct offcpu_object *on, char *buf)
{
	char peer[INET6_ADDRSTRLEN] = "";

	switch (on->kind) {
	case OFFCPU_ON_FUTEX:
		snprintf(buf, OBJECT_LEN, "futex 0x%llx", (unsigned long long)on->value);
		break;
	case OFFCPU_ON_GIL:
		snprintf(buf, OBJECT_LEN, "the GIL");
		break;
	case OFFCPU_ON_FILE:
		snprintf(buf, OBJECT_LEN, "inode %llu", (unsigned long long)on->value);
		break;
	case OFFCPU_ON_PEER:
		inet_ntop(on->family == AF_INET ? AF_INET : AF_INET6, on->peer, peer, sizeof(peer));
		snprintf(buf, OBJECT_LEN, on->family == AF_INET ? "%s:%u" : "[%s]:%u", peer,
			 on->port);
		break;
	case OFFCPU_ON_PORT:
		snprintf(buf, OBJECT_LEN, "port %u", on->port);
		break;
	default:
		*buf = '\0';
	}
}

/* The descriptor's inode as fdinfo tells it (5.14): in an overlay it is not what stat(2) says. */
static bool fdinfo_is(uint32_t tgid, uint32_t fd, uint64_t inode)
{
	char path[64], line[128];
	unsigned long long said = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/fdinfo/%u", tgid, fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "ino:%llu", &said) != 1)
		;
	if (f)
		fclose(f);
	return said == inode;
}

/* The path of a descriptor that still is that inode. */
static bool path_read(uint32_t tgid, const struct offcpu_object *on, char *buf)
{
	char link[64];
	struct stat st;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%u/fd/%u", tgid, on->fd);
	n = readlink(link, buf, OBJECT_LEN - 1);
	if (n <= 0 || stat(link, &st))
		return false;
	buf[n] = '\0';
	return st.st_ino == on->value || fdinfo_is(tgid, on->fd, on->value);
}

static void path_get(struct objects *o, const struct offcpu_end *e, char *buf)
{
	uint64_t key = hash_u64(hash_u64(HASH_SEED, e->ev.start_ns),
				(uint64_t)e->ev.tgid << 32 | e->on.fd),
		 at;

	key = hash_u64(key, e->on.value);
	if (idmap_get(&o->paths, key, &at)) {
		snprintf(buf, OBJECT_LEN, "%s", (const char *)(uintptr_t)at);
		return;
	}
	if (!path_read(e->ev.tgid, &e->on, buf))
		object_format(&e->on, buf);
	if (o->paths.n >= OBJECTS_HOURLY)
		paths_clear(o);
	idmap_set(&o->paths, key, (uintptr_t)mem_strdup(buf));
}

const char *object_name(struct objects *o, const struct offcpu_end *e, char *buf)
{
	uint64_t hour = e->ev.time_ns / HOUR_NS, hash, at;

	if (e->on.kind == OFFCPU_ON_FILE)
		path_get(o, e, buf);
	else
		object_format(&e->on, buf);
	if (!*buf)
		return NULL;
	if (o->hour != hour)
		idmap_clear(&o->told);
	o->hour = hour;
	hash = hash_bytes(HASH_SEED, buf, strlen(buf));
	if (!idmap_get(&o->told, hash, &at)) {
		if (o->told.n >= OBJECTS_HOURLY)
			return "[others]";
		idmap_set(&o->told, hash, 1);
	}
	return buf;
}
