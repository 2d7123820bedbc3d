/* SPDX-License-Identifier: Apache-2.0 */
/* go: see the header. */
#include "schema/image/go.h"

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
