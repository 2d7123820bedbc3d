/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onrecord: which Java virtual machines a helper records, as files, so that the next helper stops
 * what a killed one began: DIR/PID-START, locked (flock) by the helper that lives. It is empty
 * until the recording may have begun, and not from then on. A file is trusted only if it and
 * DIR belong to this user and no other user may write there.
 */
#ifndef SONDE_JAVA_ONRECORD_H
#define SONDE_JAVA_ONRECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

/* Of a program with an agent (jhelper.h, 4) the text is "1 SECRET " with 16 hex digits, and
 * then a letter that family l7 adds once it believes the agent. */
#define ONRECORD_TAKEN_AT 19
#define ONRECORD_TAKEN    't'

/* Make the folder (0700) if it is not there, and open it. 0, or -errno with *e. */
int onrecord_open(const char *path, int *out, struct err *e);
/* Makes and locks the file of a process. *left: a killed helper left it, and its recording had
 * begun.
 * The descriptor, or -EBUSY: another helper records this process; -errno. */
int onrecord_keep(int dirfd, uint32_t pid, uint64_t start_ticks, bool *left);
/* From now on the recording may have begun: the file has this text. 0, -errno. */
int onrecord_begin(int fd, const char *text);
/* It did not. */
void onrecord_unbegin(int fd);
bool onrecord_begun(int fd);
void onrecord_drop(int dirfd, uint32_t pid, uint64_t start_ticks, int fd);
/* "PID-START" -> numbers; false: it is not such a name. */
bool onrecord_name_parse(const char *name, uint32_t *pid, uint64_t *start_ticks);
/* Each file that killed helpers left. */
void onrecord_each_left(int dirfd, void (*each)(void *ctx, uint32_t pid, uint64_t start_ticks),
			void *ctx);

#endif
