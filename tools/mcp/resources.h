/* SPDX-License-Identifier: Apache-2.0 */
/* resources: texts that an assistant may read before it asks in SQL: the views with their columns,
 * and the saved queries. */
#ifndef SONDE_TOOLS_RESOURCES_H
#define SONDE_TOOLS_RESOURCES_H

#include <jansson.h>
#include <stdbool.h>

#include "tools/mcp/mcp.h"

/* {"resources": [...]}; the caller owns it. */
json_t *resources_list(void);
bool resources_know(const char *uri);
/* {"contents": [...]}, the caller's; NULL: cancelled. A store that cannot be read gives its reason
 * as the text. */
json_t *resources_read(const char *uri, const struct mcp_options *o, int cancel_fd);

#endif
