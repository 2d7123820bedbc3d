/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow: reads what was added to one log file since the last time, by its descriptor.
 *
 *   1. A file that became shorter, or whose last bytes before the place are others now, was
 *      truncated (logrotate's copytruncate): it is read from its begin again, behind what is sparse
 *      there, and that is counted. What was written between the last reading and the truncation is
 *      gone; how much that was, is not known.
 *   2. Only complete lines are taken. A line longer than the buffer is taken in pieces.
 *   3. The rest without a line end counts as a line when the file is final (`follow_rest`).
 *   4. A compressed file (packed/packed.h) is read to its end as what is in it; places are those in
 * that.
 */
#ifndef SONDE_LOGS_FOLLOW_H
#define SONDE_LOGS_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/logs/forms.h"

#define FOLLOW_BUFFER (256u << 10)
#define FOLLOW_KEPT   32 /* bytes before the place, to see whether they are the same */

struct follow {
	int fd;                       /* borrowed */
	struct follow_packed *packed; /* NULL: it is not compressed (follow_pack) */
	enum log_form form;
	uint64_t offset;
	char kept[FOLLOW_KEPT];
	uint32_t n_kept;
	bool long_line;         /* the place is inside of a line whose begin was taken as a piece */
	bool damaged;           /* LOG_LOCAL: nothing more can be read */
	uint64_t cuts, strange; /* truncations; records that its form does not allow */
};

typedef void (*follow_take)(void *ctx, const struct log_record *r);

/* It is compressed: what comes is read from the place on. Released by follow_release. */
void follow_pack(struct follow *f);
void follow_release(struct follow *f);
/* The place is its present end. */
void follow_to_end(struct follow *f);
/* Reads at most one buffer (FOLLOW_BUFFER + FOLLOW_KEPT bytes). True: there may be more. */
bool follow_read(struct follow *f, struct forms *forms, char *buffer, follow_take take, void *ctx);
void follow_rest(struct follow *f, struct forms *forms, char *buffer, follow_take take, void *ctx);

#endif
