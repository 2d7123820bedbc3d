/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map_page: the map of services as a picture (tools/net/netdraw.h), as a page of its own, and as a
 * part of a report's page. Colours stand as attributes, for a picture alone; page.css, where there
 * is one, has others for both themes. The table below a picture holds the same.
 */
#ifndef SONDE_TOOLS_MAP_PAGE_H
#define SONDE_TOOLS_MAP_PAGE_H

#include <stdio.h>

#include "schema/base/strbuf.h"
#include "tools/net/netmap.h"

/* Errors are left on the stream. `title`, `range`: any text. */
void map_page_svg(const struct netmap *m, const char *title, const char *range, FILE *out);
void map_page_html(const struct netmap *m, const char *title, const char *range, FILE *out);
/* Add a section with picture and table, of a map with edges; nothing of another. */
void map_page_section(const struct netmap *m, struct strbuf *s);

#endif
