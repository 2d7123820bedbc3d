/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels: what another profiler says of a sample besides its stack.
 *
 *  1. Who it was, where a key says so in any of the spellings in use (of capitals, and of blank,
 * dot, dash and underscore between words): pid, process_id; tid, thread_id; comm, process_name,
 *     process_executable_name; thread, thread_name; container, container_name; container_id. Ids
 * are numbers or digits: anything else is a label like all others.
 *  2. All else is one JSON object: texts and numbers by key, in the order of the keys. The unit of
 *     number KEY is the text KEY_unit. A key that comes twice has a list.
 */
#ifndef SONDE_TOOLS_LABELS_H
#define SONDE_TOOLS_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/fold/fold_build.h"

#define LABELS_MAX \
	65536 /* bytes of one object; what is longer is left out, and counted as a loss */

struct label_who { /* strings are the fold's, never NULL */
	const char *comm, *thread, *container, *container_id;
	uint64_t pid, tid;
};
struct label_who label_who_none(struct fold_build *b);
/* `text` NULL: it is a number. false: the key is another one, or its value no id. */
bool label_who_take(struct fold_build *b, struct label_who *to, const char *key, const char *text,
		    uint64_t number);

struct label_set; /* the others, of the sample at hand */
struct label_set *label_set_new(void);
void label_set_free(struct label_set *s);
void label_set_add(struct label_set *s, const char *key, const char *text, int64_t number,
		   const char *unit);
/* As text of the fold's, and empties the set; NULL: it was empty. */
const char *label_set_take(struct label_set *s, struct fold_build *b);

/* Each label of such an object: text, or NULL and a number with its unit or "". */
void labels_each(const char *labels,
		 void (*each)(void *ctx, const char *key, const char *text, int64_t number,
			      const char *unit),
		 void *ctx);

#endif
