/* SPDX-License-Identifier: Apache-2.0 */
/*
 * become: whom sonded runs as. In a store of the user `sonde`, which a package makes, root's sonded
 * goes on as that user, with the rights that the unit gives it (supervisor/systemd/sonded.service)
 * and no others: what it starts could not write there.
 */
#ifndef SONDE_SUPERVISOR_BECOME_H
#define SONDE_SUPERVISOR_BECOME_H

#include "schema/base/err.h"

/* 0: nothing is to be done. Otherwise the program is executed anew as that user, with the same
 * `argv`, and this returns only if that fails. */
int become_store_user(const char *store, char **argv, struct err *e);

#endif
