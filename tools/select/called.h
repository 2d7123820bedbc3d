/* SPDX-License-Identifier: Apache-2.0 */
/*
 * called: what a container is called besides its name: the service and the project of compose,
 * "project/service", and the names that it had before it was renamed. A former name means the
 * container as long as no other container of the range has that name last.
 */
#ifndef SONDE_TOOLS_CALLED_H
#define SONDE_TOOLS_CALLED_H

#include "schema/base/err.h"

struct filters;
struct selection;

/* Tells the values of --container which containers of the selection's segments they mean. */
int called_find(const struct selection *s, struct filters *f, struct err *e);

#endif
