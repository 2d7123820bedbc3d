/* SPDX-License-Identifier: Apache-2.0 */
/* prompts: questions that people ask often, as texts that an assistant's user picks from a list.
 * Pure. The caller owns what is returned. */
#ifndef SONDE_TOOLS_PROMPTS_H
#define SONDE_TOOLS_PROMPTS_H

#include "tools/mcp/rpc.h"

json_t *prompts_list(void);
/* The reply to a request for a prompt. */
json_t *prompts_get(const struct rpc_message *m);

#endif
