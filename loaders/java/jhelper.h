/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jhelper: the process that talks to Java virtual machines for the loader, and stops its recordings
 * when the loader is gone, however it ended.
 *
 * It is forked before the loader gives up its rights, and keeps those that become another user. For
 * each command it forks a child, which becomes the machine's user (jattach.h) and is alone with the
 * machine's answers. It never waits: a machine that does not answer costs itself alone.
 *
 *  1. One recording for each machine, named sonde. A recording of that name which is there already
 *     belongs to another program, unless a record in DIR says that a killed helper began it.
 *  2. DIR/PID-START is such a record (onrecord.h): made before the recording begins, locked while
 *     its helper lives, removed once the recording has stopped. The next helper stops what an
 *     unlocked record is about.
 *  3. The end of the loader's socket stops all recordings; then the helper ends.
 *  4. A second helper of this kind, with another folder, leads agents instead of recordings
 *     (loaders/java/agent): the same commands but DUMP begin and end one. Its records hold the
 *     secret by which family l7 knows what an agent writes (probes/l7/java.bpf.h).
 */
#ifndef SONDE_JAVA_JHELPER_H
#define SONDE_JAVA_JHELPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "schema/base/err.h"

#define JHELPER_DIR     "/run/sonde/java"
#define JHELPER_TLS_DIR "/run/sonde/java-tls"
#define JHELPER_WHY     160

enum jhelper_what {
	JHELPER_START = 1, /* begin the recording */
	JHELPER_DUMP,      /* an old machine: what it recorded, as a file */
	JHELPER_STOP,      /* end it; an old machine dumps first */
	JHELPER_FORGET     /* the process has ended: remove what it left. No answer */
};

struct jhelper_ask {
	uint32_t what, pid;
	uint64_t start_ticks; /* of /proc/PID/stat */
	uint32_t no_exceptions;
	uint32_t pad;
};

struct jhelper_told {
	uint32_t what, pid;
	uint64_t start_ticks;
	int32_t status;     /* 0, or -errno and why */
	uint32_t recording; /* its number */
	uint32_t major;     /* version of the machine: 17 */
	uint32_t others;    /* START: recordings of others that run there */
	char why[JHELPER_WHY];
	char version[64];
};

struct jhelper {
	int fd; /* -1: none */
	pid_t pid;
};

/* Forks it; `tls`: one for agents. Errors: DIR cannot be made (EXIT_PERMISSION). */
int jhelper_open(struct jhelper *h, const char *dir, bool tls, struct err *e);
/* 0, or -errno: it is gone, or has too much to do. */
int jhelper_send(const struct jhelper *h, const struct jhelper_ask *ask);
/* 1: an answer; *fd: its file, or -1. 0: none now. -EPIPE: it is gone. */
int jhelper_take(const struct jhelper *h, struct jhelper_told *told, int *fd);
/* CPU time of the helper and its children so far. */
uint64_t jhelper_cpu_ns(const struct jhelper *h);
/* Ends the socket: it stops what still records, and ends by itself. */
void jhelper_close(struct jhelper *h);

#endif
