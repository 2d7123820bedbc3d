/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/jcmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"

#define REPOSITORY_MAX "32m"  /* of chunks on the machine's disk; whole ones of 12 MB */
#define DUMP_AGE       "120s" /* an old machine keeps this much for the next dump */

/* clang-format off */
static const struct wish {
	const char *event;
	uint32_t since, until; /* versions; 0: all */
	const char *setting, *value; /* NULL: none */
	bool exceptions;
} WISHES[] = {
	{"ObjectAllocationSample", 16, 0, "throttle", "2500/s", false},
	{"ObjectAllocationInNewTLAB", 0, 15, NULL, NULL, false},
	{"ObjectAllocationOutsideTLAB", 0, 15, NULL, NULL, false},
	{"ThreadStart", 0, 0, NULL, NULL, false},
	{"JavaMonitorEnter", 0, 0, "threshold", "1ms", false},
	{"JavaMonitorWait", 0, 0, "threshold", "1ms", false},
	{"ThreadPark", 0, 0, "threshold", "1ms", false},
	{"GarbageCollection", 0, 0, "threshold", "0ms", false},
	{"JavaExceptionThrow", 0, 24, NULL, NULL, true},
	{"JavaExceptionThrow", 25, 0, "throttle", "off", true},
};
/* clang-format on */

static size_t request(const void *begin, size_t len, const char *line, size_t ends, char *out)
{
	const size_t n = strlen(line);

	if (n > JCMD_LINE_MAX)
		return 0;
	memcpy(out, begin, len);
	memcpy(out + len, line, n);
	memset(out + len + n, 0, ends);
	return len + n + ends;
}

size_t jcmd_request(const char *line, char *out)
{
	static const char begin[] = "1\0jcmd";

	return request(begin, sizeof(begin), line, 3, out);
}

size_t jcmd_load_request(const char *line, char *out)
{
	static const char begin[] = "1\0load\0instrument\0false";

	return request(begin, sizeof(begin), line, 1, out);
}

const char *jcmd_text(const char *answer)
{
	return !strncmp(answer, "0\n", 2) ? answer + 2 : NULL;
}

/* "OpenJDK 64-Bit Server VM version 17.0.15+6", and in the second line "JDK 17.0.15". */
const char *jcmd_version(const char *text)
{
	const char *at = strstr(text, "\nJDK ");

	return at ? at + 5 : NULL;
}

uint32_t jcmd_major(const char *text)
{
	const char *at = jcmd_version(text);
	const unsigned long n = at ? strtoul(at, NULL, 10) : 0;

	return n >= 8 && n < 1000 ? (uint32_t)n : 0;
}

/* "Recording 1: name=sonde maxsize=32.0MB (running)"; before JDK 11
 * "Recording: recording=1 name="sonde" (running)". */
static bool is_ours(const char *line, size_t len, uint32_t *id)
{
	const char *end = line + len, *name = memmem(line, len, "name=", 5),
		   *number = memmem(line, len, "recording=", 10);
	char *after;
	unsigned long n;

	if (len < 10 || strncmp(line, "Recording", 9) != 0 || !name)
		return false;
	n = strtoul(number ? number + 10 : line + 9, &after, 10);
	name += 5;
	name += *name == '"';
	if (!n || n > UINT32_MAX || (size_t)(end - name) < strlen(JCMD_NAME) ||
	    strncmp(name, JCMD_NAME, strlen(JCMD_NAME)) != 0)
		return false;
	name += strlen(JCMD_NAME);
	if (name < end && *name != ' ' && *name != '"')
		return false;
	*id = (uint32_t)n;
	return true;
}

int jcmd_recordings(const char *text, uint32_t *id)
{
	int n = 0;

	*id = 0;
	if (!strncmp(text, "Recording", 9) || strstr(text, "\nRecording")) {
		for (const char *at = text; at; at = strchr(at, '\n')) {
			at += *at == '\n';
			n += is_ours(at, strcspn(at, "\n"), id);
		}
		return n;
	}
	return strstr(text, "No available recordings") ? 0 : -1;
}

uint32_t jcmd_started(const char *text)
{
	const char *at = strstr(text, "Started recording ");
	const unsigned long n = at ? strtoul(at + 18, NULL, 10) : 0;

	return n <= UINT32_MAX ? (uint32_t)n : 0;
}

bool jcmd_stopped(const char *text)
{
	return strstr(text, "Stopped recording") != NULL;
}

static bool wanted(const struct wish *x, const struct jcmd_wish *w)
{
	return w->major >= x->since && (!x->until || w->major <= x->until) &&
	       !(x->exceptions && w->no_exceptions);
}

static void add(char *out, size_t size, size_t *len, const char *a, const char *b, const char *c,
		const char *d)
{
	const size_t room = *len < size ? size - *len : 0;
	const int n = snprintf(out + (room ? *len : 0), room, "%s%s%s%s", a, b, c, d);

	*len += n > 0 ? (size_t)n : 0;
}

int jcmd_start_line(const struct jcmd_wish *w, char *out, size_t size)
{
	const bool live = w->major >= JCMD_LIVE_SINCE;
	size_t len = 0;

	add(out, size, &len, "JFR.start name=" JCMD_NAME " disk=true maxsize=" REPOSITORY_MAX,
	    live ? " settings=none" : " maxage=" DUMP_AGE " settings=", live ? "" : w->settings,
	    "");
	for (size_t i = 0; live && i < ARRAY_SIZE(WISHES); i++) {
		const struct wish *x = &WISHES[i];

		if (!wanted(x, w))
			continue;
		add(out, size, &len, " +jdk.", x->event, "#enabled=true", "");
		/* of others the stack is recorded anyhow */
		if (x->exceptions)
			add(out, size, &len, " +jdk.", x->event, "#stackTrace=true", "");
		if (!x->setting)
			continue;
		add(out, size, &len, " +jdk.", x->event, "#", x->setting);
		add(out, size, &len, "=", x->value, "", "");
	}
	return len >= size || len > JCMD_LINE_MAX ? -E2BIG : 0;
}

size_t jcmd_settings(const struct jcmd_wish *w, char *out, size_t size)
{
	size_t len = 0;

	add(out, size, &len, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
	    "<configuration version=\"2.0\" label=\"sonde\">\n", "", "");
	for (size_t i = 0; i < ARRAY_SIZE(WISHES); i++) {
		const struct wish *x = &WISHES[i];

		if (!wanted(x, w))
			continue;
		add(out, size, &len, "<event name=\"jdk.", x->event, "\">",
		    "<setting name=\"enabled\">true</setting>"
		    "<setting name=\"stackTrace\">true</setting>");
		if (x->setting) {
			add(out, size, &len, "<setting name=\"", x->setting, "\">", x->value);
			add(out, size, &len, "</setting>", "", "", "");
		}
		add(out, size, &len, "</event>\n", "", "", "");
	}
	add(out, size, &len, "</configuration>\n", "", "", "");
	return len < size ? len : 0;
}

void jcmd_line(const char *text, char *out, size_t size)
{
	size_t n = 0;

	text += strspn(text, " \n\r\t");
	for (; *text && *text != '\n' && n + 1 < size; text++)
		out[n++] = (char)(*text >= ' ' && *text < 127 ? *text : '?');
	if (size)
		out[n] = '\0';
}
