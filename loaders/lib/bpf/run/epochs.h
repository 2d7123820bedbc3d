/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epochs: when sums that programs keep by epoch are read and stored. An epoch ends with its bucket,
 * EPOCHS_NS after its begin at the latest, since processes are forgotten 10 s after their end. Its
 * sums are stored when a program that was running then has ended, and sonde-maps has reported the
 * epoch's processes (or was waited for long enough).
 */
#ifndef SONDE_BPF_EPOCHS_H
#define SONDE_BPF_EPOCHS_H

#include <stdbool.h>
#include <stdint.h>

struct family_host;

#define EPOCHS_NS 2000000000ll

struct epochs {
	int64_t begun_ns, ended_ns; /* of the one that is stored next; ended_ns 0: it goes on */
	uint32_t number;            /* the family's, of one that is over */
};

enum epochs_step {
	EPOCHS_WAIT,
	EPOCHS_END,  /* the programs shall go on in the next one: then epochs_over */
	EPOCHS_STORE /* its sums shall be stored: then epochs_stored */
};

/* What the caller does now. The first call begins the first one. */
enum epochs_step epochs_step(struct epochs *p, const struct family_host *h, int64_t now_ns);
void epochs_over(struct epochs *p, const struct family_host *h, int64_t now_ns, uint32_t number);
void epochs_stored(struct epochs *p);
/* UTC: the middle of the one that is stored, for its rows' bucket. */
int64_t epochs_utc(const struct epochs *p, const struct family_host *h);
/* When to ask again at the latest. */
int64_t epochs_next(const struct epochs *p, const struct family_host *h, int64_t now_ns);

#endif
