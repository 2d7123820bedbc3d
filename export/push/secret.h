/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret: a password or token, the first line of a file. The file is read for each request, so that
 * it can be changed at any time. No error message contains the secret.
 */
#ifndef SONDE_PUSH_SECRET_H
#define SONDE_PUSH_SECRET_H

#include "schema/base/err.h"

#define SECRET_MOST 4096

/* EXIT_PERMISSION (without the file's content): it cannot be read, is not a regular file, is empty
 * or too long, or has bytes that an HTTP header may not have. `who` begins the message. */
int secret_read(const char *path, const char *who, char secret[SECRET_MOST], struct err *e);
/* Warns if every user of this host may read it. */
void secret_warn(const char *path, const char *who);

#endif
