/* SPDX-License-Identifier: Apache-2.0 */
/* sealday: one make of a day file while it is written: STORE/sealing.db. Not for other rooms. */
#ifndef SONDE_STORE_SEALDAY_H
#define SONDE_STORE_SEALDAY_H

#include "schema/store/seal.h"
#include "schema/store/sealdict.h"

struct sealday {
	struct sqlite3 *db;
	char path[PATH_MAX];
	int64_t t0;          /* midnight */
	struct sealdict dict;
};

/* A copy of the make at `latest` (NULL: the first one) for the day that begins at t0. */
int sealday_open(struct sealday *d, const char *dir, const char *latest, int64_t t0, struct err *e);
/* Takes in the segment at `path`. -ENOTSUP: it has what cannot be taken over; -EBADMSG: it is damaged; the day is as it was. */
int sealday_take(struct sealday *d, const char *path, struct seal_report *r, struct err *e);
/* Everything on the disk; closed. */
int sealday_finish(struct sealday *d, struct err *e);
/* Closes; what is there is the next one's to empty. */
void sealday_drop(struct sealday *d);

#endif
