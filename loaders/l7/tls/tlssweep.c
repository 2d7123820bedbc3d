/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/tls/tlssweep.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/l7.h"
#include "probes/l7_tls.h"
#include "schema/base/mem.h"

#define VALUE_MOST 256
#define STEPS_MOST \
	65536 /* if a key is deleted meanwhile, the kernel starts from the first one again */

void tlssweep_process(struct bpf_object *obj, uint32_t tgid, bool go)
{
	const uint32_t flags = go ? TLS_PROCESS_GO : TLS_PROCESS_C;

	const uint32_t zero = 0;
	int epoch = bpf_object__find_map_fd_by_name(obj, "tls_epoch");
	uint32_t now;

	if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(obj, "tls_processes"), &tgid,
				&flags, BPF_NOEXIST) ||
	    bpf_map_lookup_elem(epoch, &zero, &now))
		return;
	now++;
	bpf_map_update_elem(epoch, &zero, &now, BPF_ANY);
}

static bool process_gone(const void *key, const void *value, int socks)
{
	uint32_t tgid;

	(void)value;
	(void)socks;
	memcpy(&tgid, key, sizeof(tgid));
	return kill((pid_t)tgid, 0) && errno == ESRCH;
}

static bool thread_gone(const void *key, const void *value, int socks)
{
	uint64_t who;

	(void)value;
	(void)socks;
	memcpy(&who, key, sizeof(who));
	return syscall(SYS_tgkill, (pid_t)(who >> 32), (pid_t)(uint32_t)who, 0) && errno == ESRCH;
}

/* A goroutine ends with its process at the latest. */
static bool call_gone(const void *key, const void *value, int socks)
{
	struct tls_call_key k;
	uint32_t tgid;

	memcpy(&k, key, sizeof(k));
	if (!k.g)
		return thread_gone(&k.who, value, socks);
	tgid = (uint32_t)(k.who >> 32);
	return process_gone(&tgid, value, socks);
}

/* Its socket is closed, or another one. */
static bool conn_gone(const void *key, const void *value, int socks)
{
	struct tls_conn c;
	struct l7_sock sock = {0};

	(void)key;
	memcpy(&c, value, sizeof(c));
	return bpf_map_lookup_elem(socks, &c.sk, &sock) || sock.ino != c.ino;
}

/* By socket, with the direction in bit 0. */
static bool cipher_gone(const void *key, const void *value, int socks)
{
	struct tls_cipher c;
	struct l7_sock sock = {0};
	uint64_t sk;

	memcpy(&sk, key, sizeof(sk));
	memcpy(&c, value, sizeof(c));
	sk &= ~1ull;
	return bpf_map_lookup_elem(socks, &sk, &sock) || sock.ino != c.ino;
}

static void map_sweep(struct bpf_object *obj, const char *name, size_t key_size,
		      bool (*gone)(const void *key, const void *value, int socks))
{
	int fd = bpf_object__find_map_fd_by_name(obj, name),
	    socks = bpf_object__find_map_fd_by_name(obj, "socks");
	uint64_t key[2], next[2], value[VALUE_MOST / 8];
	uint8_t *dead = NULL; /* keys */
	size_t n = 0, cap = 0, steps = 0;

	for (int err = bpf_map_get_next_key(fd, NULL, next); !err && steps < STEPS_MOST;
	     steps++, err = bpf_map_get_next_key(fd, key, next)) {
		memcpy(key, next, sizeof(key));
		if (bpf_map_lookup_elem(fd, key, value) || !gone(key, value, socks))
			continue;
		if (n == cap) {
			cap = cap ? 2 * cap : 64;
			dead = mem_realloc(dead, cap * sizeof(key));
		}
		memcpy(dead + n++ * sizeof(key), key, key_size);
	}
	for (size_t i = 0; i < n; i++)
		bpf_map_delete_elem(fd, dead + i * sizeof(key));
	free(dead);
}

void tlssweep(struct bpf_object *obj)
{
	map_sweep(obj, "tls_processes", 4, process_gone);
	map_sweep(obj, "tls_calls", 16, call_gone);
	map_sweep(obj, "tls_lasts", 16, call_gone);
	map_sweep(obj, "tls_conns", 16, conn_gone);
	map_sweep(obj, "tls_ciphers", 8, cipher_gone);
}
