/* SPDX-License-Identifier: Apache-2.0 */
/*
 * become: the user that sonded runs as. In a store owned by the user `sonde`, which the package
 * creates, a sonded started by root switches to that user, with the capabilities that the unit
 * grants (supervisor/systemd/sonded.service) and no others: its children could not write to the
 * store otherwise. What root recorded there before becomes that user's too (mend.h).
 */
#ifndef SONDE_SUPERVISOR_BECOME_H
#define SONDE_SUPERVISOR_BECOME_H

#include "schema/base/err.h"

/* 0: no switch is needed. Otherwise executes the program again as that user with the same `argv`;
 * returns only if that fails. */
int become_store_user(const char *store, char **argv, struct err *e);

#endif
