/* SPDX-License-Identifier: Apache-2.0 */
/* go: what an image index knows about a Go program in addition to its functions, lines and rows
 * (format.h, condition 14). */
#ifndef SONDE_IMAGE_GO_H
#define SONDE_IMAGE_GO_H

#include <stdbool.h>

#include "schema/image/format.h"

struct image;

/* A copy; `version` ends in NUL. Addresses are what the index says: who reads a process there
 * checks what it finds. false: no Go program, or an index that does not tell. */
bool image_go(const struct image *img, struct image_go_record *out);
/* 26 of "go1.26.8" or "devel go1.27-0123456"; 0: not known. */
unsigned image_go_minor(const char *version);

#endif
