/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/mcp/ask.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/limits/child.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define ANSWER_BYTES (64ull << 20) /* of a child */

/* Of stderr: the error without the program's name, and its fix; lines that say how far it is are
 * left out. */
static void split(const char *said, struct strbuf *why, struct strbuf *fix)
{
	static const char NAME[] = "sonde: ", FIX[] = "  fix: ";

	for (const char *line = said; *line;) {
		const size_t len = strcspn(line, "\n");

		if (!strncmp(line, NAME, sizeof(NAME) - 1)) {
			strbuf_addstr(why, why->len ? "; " : "");
			strbuf_addshown(why, line + sizeof(NAME) - 1, len - sizeof(NAME) + 1);
		} else if (!strncmp(line, FIX, sizeof(FIX) - 1)) {
			strbuf_addshown(fix, line + sizeof(FIX) - 1, len - sizeof(FIX) + 1);
		}
		line += len + (line[len] == '\n');
	}
	if (!why->len)
		strbuf_addshown(why, said, strlen(said));
}

static void read_text(struct child_answer *a, struct asked *out)
{
	ssize_t n;

	free(out->text);
	out->text = mem_alloc((size_t)a->out_bytes + 1);
	n = pread(a->out_fd, out->text, (size_t)a->out_bytes, 0);
	out->len = n > 0 ? (size_t)n : 0;
	out->text[out->len] = '\0';
	close(a->out_fd);
}

static void sort_out(const struct child_answer *a, const struct mcp_options *o, struct asked *out)
{
	struct strbuf why = STRBUF_INIT, fix = STRBUF_INIT;

	out->how = a->end == CHILD_STOPPED ? ASKED_CANCELLED : ASKED_FAILED;
	if (a->end == CHILD_OVER_TIME) {
		strbuf_addf(&why, "no answer within %u s: ask for a shorter range", o->seconds);
	} else if (a->end == CHILD_KILLED && a->signal == SIGXFSZ) {
		strbuf_addf(&why,
			    "the answer is longer than %llu MiB: ask for less, in SQL with LIMIT",
			    ANSWER_BYTES >> 20);
	} else if (a->end == CHILD_KILLED) {
		strbuf_addf(
			&why,
			"ended by signal %d, most likely because memory was short: ask for a shorter range",
			a->signal);
	} else if (a->end == CHILD_EXITED) {
		split(a->said, &why, &fix);
		/* a check that fires ends with 1, and has answered */
		out->how = a->exit == EXIT_NOTHING ? ASKED_NOTHING :
			   a->exit == EXIT_OK || (a->exit == EXIT_RUNTIME && out->len) ?
						     ASKED_ANSWER :
						     ASKED_FAILED;
	}
	out->why = strbuf_take(&why);
	out->fix = strbuf_take(&fix);
}

void ask(const char *const *argv, const struct mcp_options *o, int cancel_fd, struct asked *out)
{
	const struct child_limits limits = {.seconds = o->seconds,
					    .memory_bytes = (uint64_t)o->memory_mb << 20,
					    .answer_bytes = ANSWER_BYTES,
					    .spans_fd = o->spans_fd};
	struct child_answer a;
	struct err e = {0};

	*out = (struct asked){.how = ASKED_FAILED, .text = mem_strdup("")};
	if (child_ask(argv, &limits, cancel_fd, -1, &a, &e)) {
		out->why = mem_strdup(e.what);
		out->fix = mem_strdup(e.fix);
		return;
	}
	read_text(&a, out);
	sort_out(&a, o, out);
}

void asked_release(struct asked *a)
{
	free(a->text);
	free(a->why);
	free(a->fix);
	*a = (struct asked){0};
}

json_t *asked_reason(const struct asked *a, const char *key)
{
	json_t *out = json_pack("{s:s}", key, *a->why ? a->why : "the answer is not JSON");

	if (*a->fix)
		json_object_set_new(out, "fix", json_string(a->fix));
	return out;
}
