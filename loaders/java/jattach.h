/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jattach: one conversation with a Java virtual machine over its attach socket, by a process that
 * becomes the machine's user for it. Only in a process that was forked for this: there is no way
 * back.
 *
 *  1. jattach_open, with all rights: a pidfd, and the process's working folder and /tmp as
 *     descriptors: later they can be neither looked up nor replaced.
 *  2. jattach_become: the machine's user and group, no other groups, no capability. Files made
 *     from then on belong to that user, whom the machine trusts.
 *  3. jattach_ready: if nothing answers on /tmp/.java_pidN (N: its number in its own pid
 *     namespace), the file .attach_pidN is made in the working folder, or else in /tmp, and
 *     SIGQUIT sent (jguard.h says when that is safe). The file goes when the socket is there; a
 *     machine that does not come to it keeps the file, because without it the signal means "print
 *     all threads".
 *  4. jattach_ask: one command. The socket's other end must be that process.
 *
 * All return 0 or -errno, and write why in words for people.
 */
#ifndef SONDE_JAVA_JATTACH_H
#define SONDE_JAVA_JATTACH_H

#include <stdint.h>

#include "loaders/lib/host/talk/asuser.h"

#define JATTACH_WHY 160

struct jattach {
	struct asuser of;
	int cwd, tmp;
	char why[JATTACH_WHY];
};

int jattach_open(struct jattach *a, uint32_t pid, uint64_t start_ticks);
int jattach_become(struct jattach *a);
/* Is there a socket that answers? Sends no signal. */
int jattach_listens(struct jattach *a);
int jattach_ready(struct jattach *a);
/* `answer` has JCMD_ANSWER_MAX bytes; it ends with NUL. */
int jattach_ask(struct jattach *a, const char *line, char *answer);
/* Loads a Java agent: JAR=OPTIONS. */
int jattach_load(struct jattach *a, const char *line, char *answer);

#endif
