/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map_page: the map of services as a picture (tools/net/netdraw.h), as a page, and as a section of
 * a report. Colours are attributes, for the picture alone; page.css, if present, overrides them for
 * both themes. The table below a picture shows the same.
 */
#ifndef SONDE_TOOLS_MAP_PAGE_H
#define SONDE_TOOLS_MAP_PAGE_H

#include <stdio.h>

#include "schema/base/strbuf.h"
#include "tools/net/netmap.h"

/* Errors are left on the stream. `title`, `range`: any text. */
void map_page_svg(const struct netmap *m, const char *title, const char *range, FILE *out);
void map_page_html(const struct netmap *m, const char *title, const char *range, FILE *out);
/* Adds a section with picture and table if the map has edges. */
void map_page_section(const struct netmap *m, struct strbuf *s);

#endif
