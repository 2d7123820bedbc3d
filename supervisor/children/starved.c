/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/starved.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "supervisor/limits/load_limit.h"

#define AWAY_NS 5000000000ll /* between two looks: who looks was blocked itself */

static bool text_read(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	cleanup_file FILE *f = NULL;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	f = fopen(path, "re");
	n = f ? fread(text, 1, size - 1, f) : 0;
	text[n] = '\0';
	return n > 0;
}

bool starved_read(pid_t pid, struct starved_look *out)
{
	char text[1024];
	const char *state;

	*out = (struct starved_look){0};
	if (!text_read(pid, "stat", text, sizeof(text)))
		return false;
	state = strrchr(text, ')');
	out->runnable = state && state[1] == ' ' && state[2] == 'R';
	out->stopped = state && state[1] == ' ' && state[2] == 'T';
	out->blocked = state && state[1] == ' ' && state[2] == 'D';
	if (!text_read(pid, "schedstat", text, sizeof(text)) ||
	    sscanf(text, "%" SCNu64 " %" SCNu64, &out->ran_ns, &out->waited_ns) != 2)
		out->ran_ns = (uint64_t)process_cpu_ns(pid);
	return true;
}

int64_t starved_take(struct starved *s, const struct starved_look *l, int64_t since_ns,
		     int64_t now_ns)
{
	int64_t waited, pending;

	if (!s->looked_ns || since_ns > s->since_ns) {
		s->since_ns = since_ns;
		s->before_ns = s->looked_ns ? s->waited_ns : l->waited_ns;
		s->blocked_ns = 0;
	}
	if (s->looked_ns &&
	    ((l->blocked && l->ran_ns == s->ran_ns) || now_ns - s->looked_ns > AWAY_NS))
		s->blocked_ns += now_ns - (s->looked_ns > since_ns ? s->looked_ns : since_ns);
	if (!s->looked_ns || !l->runnable || l->ran_ns != s->ran_ns)
		s->ran_at_ns = now_ns;
	s->ran_ns = l->ran_ns;
	s->waited_ns = l->waited_ns;
	s->looked_ns = now_ns;
	pending = now_ns - (s->ran_at_ns > since_ns ? s->ran_at_ns : since_ns);
	waited = (int64_t)(l->waited_ns - s->before_ns) + pending;
	return waited < now_ns - since_ns ? waited : now_ns - since_ns;
}
