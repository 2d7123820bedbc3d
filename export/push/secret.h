/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret: a password or token, the first line of a file. It is read anew for each request, so that
 * it may be changed meanwhile, and no error has it.
 */
#ifndef SONDE_PUSH_SECRET_H
#define SONDE_PUSH_SECRET_H

#include "schema/base/err.h"

#define SECRET_MOST 4096

/* EXIT_PERMISSION, without the file's content: it cannot be read, is no regular file, is empty, too
 * long, or holds what no head may hold. `who` begins the error. */
int secret_read(const char *path, const char *who, char secret[SECRET_MOST], struct err *e);
/* A word of warning where everybody on this host may read it. */
void secret_warn(const char *path, const char *who);

#endif
