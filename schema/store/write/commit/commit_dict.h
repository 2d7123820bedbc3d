/* SPDX-License-Identifier: Apache-2.0 */
/* commit_dict: entries of the dictionary on their way into a segment, each at its first use, and
 * names learnt later. */
#ifndef SONDE_STORE_WRITE_COMMIT_DICT_H
#define SONDE_STORE_WRITE_COMMIT_DICT_H

#include "schema/store/write/commit/transaction.h"

uint32_t commit_text(struct commit *c, uint32_t index);
uint32_t commit_container(struct commit *c, uint32_t index);
uint32_t commit_image(struct commit *c, uint32_t index);
uint32_t commit_frame(struct commit *c, uint32_t index);
uint32_t commit_process(struct commit *c, uint32_t index);
/* The stack that ends at `node`, with its frames. */
uint32_t commit_stack(struct commit *c, uint32_t node);
uint32_t commit_task(struct commit *c, uint32_t index, const struct commit_run *runs);
uint32_t commit_series(struct commit *c, uint32_t index, const struct commit_run *runs);

void commit_learnt_image(struct commit *c,
			 uint32_t index); /* the build-id it has got since it was written */
void commit_learnt_frame(struct commit *c,
			 uint32_t index); /* what it has gained since it was written */
void commit_learnt_process(struct commit *c, uint32_t index);

#endif
