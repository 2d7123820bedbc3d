/* SPDX-License-Identifier: Apache-2.0 */
/* who: the process of a row: which it is, whether the capture covers it, and its columns. */
#ifndef SONDE_BPF_WHO_H
#define SONDE_BPF_WHO_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/types.h>

#include "loaders/lib/bpf/family.h"
#include "probes/lib/stack.h"
#include "probes/lib/who.h"
#include "schema/facts/fact.h"

struct hostmaps_process;

struct who {
	struct who_id id;
	struct hostmaps_process *p;    /* NULL: not known. Until the next hostmaps_read */
	char comm[STACK_COMM_LEN + 1]; /* of its thread, "": not known; for one that is not known */
	bool wanted;                   /* the capture covers it */
	bool excluded;                 /* by the rules: nothing of it is shown */
};

/* `comm` (STACK_COMM_LEN bytes) may be NULL. */
struct who who_find(struct family_host *h, const struct who_id *id, const char *comm);
/* who->wanted, of a row that is stored only then: one whose process is not known may be of a
 * process that the capture covers, and counts as lost. */
bool who_covered(struct family_host *h, const struct who *who);
/* Its process.id, for another column of a row; 0: none is known. Of this segment: after -ESTALE it
 * is another. */
uint32_t who_row(struct family_host *h, const struct who *who);
/* A row of any fact, with its process and container in these columns. */
void who_put(struct family_host *h, int64_t utc_ns, const struct fact *f, struct fact_row *row,
	     const struct who *who, int process, int container);

#endif
