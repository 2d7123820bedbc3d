/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/tls/javaagents.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/proc/ownfolder.h"
#include "loaders/lib/host/proc/proc.h"
#include "probes/l7_tls.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"

#define LOOK_NS (NSEC_PER_SEC / 4)
/* onrecord.h */
#define TAKEN_AT 19
#define TAKEN    't'

/* The process has TLS that is seen: its system calls are looked at. */
static void process_note(struct bpf_object *obj, uint32_t tgid)
{
	const uint32_t zero = 0;
	int processes = bpf_object__find_map_fd_by_name(obj, "tls_processes"),
	    epochs = bpf_object__find_map_fd_by_name(obj, "tls_epoch");
	uint32_t flags = 0, epoch;

	(void)bpf_map_lookup_elem(processes, &tgid, &flags);
	flags |= TLS_PROCESS_JAVA | TLS_PROCESS_SEEN;
	(void)bpf_map_update_elem(processes, &tgid, &flags, BPF_ANY);
	if (bpf_map_lookup_elem(epochs, &zero, &epoch))
		return;
	epoch++;
	(void)bpf_map_update_elem(epochs, &zero, &epoch, BPF_ANY);
}

static bool secret_read(int fd, uint64_t *secret)
{
	char text[TAKEN_AT + 1] = {0};

	return fd >= 0 && ownfolder_is_ours(fd, S_IFREG) &&
	       pread(fd, text, TAKEN_AT, 0) == TAKEN_AT &&
	       sscanf(text, "1 %16" SCNx64 " ", secret) == 1 && *secret;
}

static void file_take(struct javaagents *a, int dir, const char *name, struct idmap *now,
		      struct bpf_object *obj, uint32_t *count)
{
	const char taken = TAKEN;
	cleanup_fd int fd = -1;
	struct proc_stat ps;
	uint64_t start, secret, known;
	uint32_t tgid;
	int end = 0;

	if (sscanf(name, "%" SCNu32 "-%" SCNu64 "%n", &tgid, &start, &end) != 2 || name[end])
		return;
	fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (!secret_read(fd, &secret) || proc_read_stat(tgid, &ps) || ps.start_ticks != start)
		return;
	if (!idmap_get(&a->known, tgid, &known) || known != secret) {
		if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(obj, "tls_javas"), &tgid,
					&secret, BPF_ANY))
			return;
		process_note(obj, tgid);
		idmap_set(&a->known, tgid, secret);
		log_info("l7: a Java agent in process %u is believed", tgid);
	}
	idmap_set(now, tgid, secret);
	/* before the letter: the agent begins once that is there, and its first write counts */
	if (__atomic_load_n(count, __ATOMIC_RELAXED) < now->n)
		__atomic_store_n(count, (uint32_t)now->n, __ATOMIC_SEQ_CST);
	if (pwrite(fd, &taken, 1, TAKEN_AT) != 1)
		log_debug("l7: cannot note in %s that it was read", name);
}

static void ended_remove(struct javaagents *a, const struct idmap *now, struct bpf_object *obj)
{
	const int fd = bpf_object__find_map_fd_by_name(obj, "tls_javas");
	uint32_t key, next, gone[64];
	size_t n = 0;

	if (!a->known.n)
		return;
	for (int err = bpf_map_get_next_key(fd, NULL, &next); !err && n < 64;
	     err = bpf_map_get_next_key(fd, &key, &next)) {
		key = next;
		if (!idmap_get(now, key, NULL))
			gone[n++] = key;
	}
	for (size_t i = 0; i < n; i++)
		(void)bpf_map_delete_elem(fd, &gone[i]);
}

void javaagents_poll(struct javaagents *a, const char *path, struct bpf_object *obj,
		     uint32_t *count, int64_t now_ns)
{
	int dir = -1;
	cleanup_dir DIR *d = NULL;
	struct idmap now = {0};
	const struct dirent *at;

	if (now_ns - a->looked_ns < LOOK_NS)
		return;
	a->looked_ns = now_ns;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir >= 0 && !ownfolder_is_ours(dir, S_IFDIR)) {
		close(dir);
		dir = -1;
	}
	if (dir >= 0) {
		d = fdopendir(dir);
		if (!d)
			close(dir);
	}
	while (d && (at = readdir(d)))
		file_take(a, dir, at->d_name, &now, obj, count);
	ended_remove(a, &now, obj);
	idmap_release(&a->known);
	a->known = now;
	__atomic_store_n(count, (uint32_t)now.n, __ATOMIC_SEQ_CST);
}

void javaagents_release(struct javaagents *a)
{
	idmap_release(&a->known);
}
