/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/mcp/prompts.h"

#include <string.h>

static const struct prompt {
	const char *name, *about, *argument[2], *about_argument[2], *text;
} PROMPTS[] = {
	{"what-happened",
	 "Find out what happened on this host at a time",
	 {"time"},
	 {"when, such as 03:10 or 2026-11-20T03:10:00+01:00"},
	 "Find out what happened on this host at %s. Call investigate with at=that time, then follow what it names with requests, waits, cpu_stacks and events. "
	 "Answer in at most five sentences: what was felt, who caused it, and the evidence with its numbers. Say what was not recorded."},
	{"why-slow",
	 "Find out why a service is slow",
	 {"service", "time"},
	 {"name of a container, unit or command", "when; default: now"},
	 "Find out why %s is slow%s%s. Call requests and waits with what=its name, and investigate for the range; follow its outbound requests to who was slow, and there to the cause. "
	 "Answer in at most five sentences with numbers before and during. Say what was not recorded."},
};
#define N_PROMPTS (sizeof(PROMPTS) / sizeof(PROMPTS[0]))

json_t *prompts_list(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < N_PROMPTS; i++) {
		const struct prompt *p = &PROMPTS[i];
		json_t *arguments = json_array();

		for (size_t k = 0; k < 2 && p->argument[k]; k++)
			json_array_append_new(arguments,
					      json_pack("{s:s, s:s, s:b}", "name", p->argument[k],
							"description", p->about_argument[k],
							"required", k == 0));
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:o}", "name", p->name, "description",
						p->about, "arguments", arguments));
	}
	return json_pack("{s:o}", "prompts", list);
}

json_t *prompts_get(const struct rpc_message *m)
{
	const char *name = json_string_value(json_object_get(m->params, "name")), *value, *second;
	const json_t *args = json_object_get(m->params, "arguments");
	const struct prompt *p = NULL;
	json_t *text;

	for (size_t i = 0; name && i < N_PROMPTS; i++)
		p = strcmp(PROMPTS[i].name, name) != 0 ? p : &PROMPTS[i];
	if (!p)
		return rpc_error(m->id, RPC_PARAMS, "there is no such prompt: see prompts/list",
				 NULL);
	value = json_string_value(json_object_get(args, p->argument[0]));
	if (!value || !*value)
		return rpc_error(m->id, RPC_PARAMS,
				 p == &PROMPTS[0] ? "the argument time is missing" :
						    "the argument service is missing",
				 NULL);
	second = p->argument[1] ? json_string_value(json_object_get(args, p->argument[1])) : NULL;
	text = p == &PROMPTS[0] ? json_sprintf(PROMPTS[0].text, value) :
				  json_sprintf(PROMPTS[1].text, value, second ? " at " : "",
					       second ? second : "");
	return rpc_result(m,
			  json_pack("{s:s, s:[{s:s, s:{s:s, s:o}}]}", "description", p->about,
				    "messages", "role", "user", "content", "type", "text", "text",
				    text),
			  false);
}
