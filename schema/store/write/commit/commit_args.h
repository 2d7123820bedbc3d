/* SPDX-License-Identifier: Apache-2.0 */
/* commit_args: command lines, stored as what differs from another one of the program
 * (model/argshare.h). */
#ifndef SONDE_STORE_WRITE_COMMIT_ARGS_H
#define SONDE_STORE_WRITE_COMMIT_ARGS_H

#include "schema/store/model/argshare.h"
#include "schema/store/write/commit/transaction.h"

/* The base of a command line, 0: it has none. What differs from it is put into c->own. */
uint32_t commit_args(struct commit *c, uint32_t exe, const char *args, struct argshare *share);

#endif
