/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/image/go.h"

#include <stdio.h>
#include <string.h>

#include "schema/image/inside.h"

bool image_go(const struct image *img, struct image_go_record *out)
{
	if (!img->go)
		return false;
	memcpy(out, img->go, sizeof(*out));
	out->version[sizeof(out->version) - 1] = 0;
	return true;
}

unsigned image_go_minor(const char *version)
{
	unsigned minor;

	for (; *version; version++)
		if (sscanf(version, "go1.%3u", &minor) == 1)
			return minor;
	return 0;
}
