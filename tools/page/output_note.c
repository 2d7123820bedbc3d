/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/page/output_note.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"
#include "tools/print/json.h"
#include "tools/print/term.h"

extern char **environ;

char *output_note_default_path(const char *verb, const struct selection *sel)
{
	struct strbuf s = STRBUF_INIT;
	const char *what = *sel->what ? sel->what : "host";
	time_t from = (time_t)(sel->from_ns / NSEC_PER_SEC);
	struct tm tm = {0};
	size_t n = 0;
	bool gap = false;

	strbuf_addf(&s, "./sonde-%s-", verb);
	for (; *what && n < 60; what++) {
		bool plain = strchr("._", *what) ?
				     n > 0 :
				     (*what >= '0' && *what <= '9') ||
					     ((*what | 32) >= 'a' && (*what | 32) <= 'z');

		if (plain) {
			strbuf_addf(&s, "%s%c", gap && n ? "-" : "", *what);
			n++;
		}
		gap = !plain;
	}
	localtime_r(&from, &tm);
	strbuf_addf(&s, "%s-%02d%02d.html", n ? "" : "x", tm.tm_hour, tm.tm_min);
	return strbuf_take(&s);
}

/* xdg-open may run as long as the browser: after a moment without an error it is left alone. */
int output_note_open(const char *path, struct err *e)
{
	char *argv[] = {(char *)"xdg-open", (char *)path, NULL};
	pid_t pid;
	int status = 0, error = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);

	for (int i = 0; !error && i < 20; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
		usleep(100 * 1000);
	}
	if (!error && !status)
		return 0;
	err_set(e, -ENOENT, EXIT_RUNTIME, "wrote %s, but cannot open a browser: xdg-open %s", path,
		error ? "is missing" : "failed");
	err_fix(e, "open the file in a browser yourself");
	return -ENOENT;
}

void output_note_say(const struct verb_call *call, const char *path, enum output_form form,
		     uint64_t bytes)
{
	char size[32];

	if (call->json) {
		json_t *row = json_object(), *j;
		char schema[64];

		snprintf(schema, sizeof(schema), "%s.written", call->verb->name);
		j = json_envelope(schema, call->sel->from_ns, call->sel->to_ns);
		json_object_set_new(row, "path", json_text(path));
		json_object_set_new(row, "bytes", json_integer((json_int_t)bytes));
		json_array_append_new(json_rows(j), row);
		json_print(j, stdout, 1);
		return;
	}
	printf("wrote %s (%s%s)\n", path, units_bytes(bytes, size, sizeof(size)),
	       form == OUTPUT_HTML ? ", works offline" : "");
	fflush(stdout);
	if (call->quiet)
		return;
	if (form == OUTPUT_HTML)
		fputs("open in a browser: click zooms, / searches, ? lists all keys   (--open: now)\n",
		      stderr);
	else if (form == OUTPUT_PPROF)
		fprintf(stderr, "next: go tool pprof -top %s\n", path);
}
