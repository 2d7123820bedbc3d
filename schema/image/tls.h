/* SPDX-License-Identifier: Apache-2.0 */
/* tls: where an image index says that clear text inside TLS can be read (format.h, condition 16).
 */
#ifndef SONDE_IMAGE_TLS_H
#define SONDE_IMAGE_TLS_H

#include <stddef.h>

#include "schema/image/format.h"

struct image;

/* Borrowed, IMAGE_TLS_SITES at most; each number lies in its range, and nothing else was checked.
 * 0: none. */
size_t image_tls(const struct image *img, const struct image_tls_site **out);

#endif
