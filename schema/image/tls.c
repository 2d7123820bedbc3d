/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/image/tls.h"

#include "schema/image/inside.h"

size_t image_tls(const struct image *img, const struct image_tls_site **out)
{
	*out = img->tls;
	return img->tls_count;
}
