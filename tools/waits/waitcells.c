/* SPDX-License-Identifier: Apache-2.0 */
/* waitcells: see the header. */
#include "tools/waits/waitcells.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "tools/print/json.h"
#include "tools/print/term.h"
#include "tools/print/wrap.h"

#define ID_DIGITS 64 /* of a container's id */
#define ID_SHOWN  12

const char *waitcell_time(uint64_t ns, char buf[24])
{
	double v = (double)ns;

	if (v < 1e6)
		snprintf(buf, 24, "%.0f us", v / 1e3);
	else if (v < 1e9)
		snprintf(buf, 24, "%.1f ms", v / 1e6);
	else if (v < 120e9)
		snprintf(buf, 24, "%.2f s", v / 1e9);
	else
		snprintf(buf, 24, "%.1f min", v / 60e9);
	return buf;
}

void waitcell_duration(struct table *t, uint64_t ns, bool known)
{
	char buf[24];

	table_cell(t, known ? waitcell_time(ns, buf) : "-");
}

void waitcell_addname(struct strbuf *out, const char *name)
{
	while (*name) {
		size_t hex = strspn(name, "0123456789abcdef"), n = hex ? hex : 1;

		strbuf_add(out, name, hex == ID_DIGITS ? ID_SHOWN : n);
		name += n;
	}
}

void waitcell_name(struct table *t, const char *name)
{
	struct strbuf shown cleanup_strbuf = STRBUF_INIT;

	waitcell_addname(&shown, name && *name ? name : "-");
	table_cell(t, strbuf_str(&shown));
}

void waitcell_pid(struct table *t, uint32_t pid, size_t n_processes)
{
	char count[32];

	if (pid)
		table_cellf(t, "%u", pid);
	else if (n_processes > 1)
		table_cellf(t, "%s procs", term_count(n_processes, count, sizeof(count)));
	else
		table_cell(t, "-");
}

void waitcell_percent(struct table *t, uint64_t part, uint64_t whole)
{
	table_cellf(t, "%.1f %%", whole ? 100 * (double)part / (double)whole : 0);
}

int waitcell_by(const char *word, enum waitsum_by *by, struct err *e)
{
	static const char *const names[] = {[WAITSUM_BY_PROCESS] = "process",
					    [WAITSUM_BY_THREAD] = "thread",
					    [WAITSUM_BY_COMMAND] = "command",
					    [WAITSUM_BY_CONTAINER] = "container"};

	*by = WAITSUM_BY_PROCESS;
	for (size_t i = 0; word && i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], word)) {
			*by = (enum waitsum_by)i;
			return 0;
		}
	if (!word)
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "--by '%.40s': it is command, process, thread or container",
		word);
	err_fix(e, "--by command");
	return -EINVAL;
}

void waitcell_print(struct table *t, const struct strbuf *brief, const struct verb_call *call)
{
	const char *container;

	table_omit_empty(t);
	container = table_omit_equal(t, "CONTAINER");
	if (!call->quiet) {
		struct strbuf clean cleanup_strbuf = STRBUF_INIT;

		strbuf_addshown(&clean, strbuf_str(brief), strlen(strbuf_str(brief)));
		if (strbuf_str(&clean)[0])
			wrap_print(stdout, strbuf_str(&clean), 2);
		if (container)
			term_printf(stdout, "all of container %s\n", container);
	}
	table_print(t, stdout, call->wide ? 0 : term_width(stdout));
}

json_t *waitcell_held(const struct waitheld *h)
{
	json_t *list = json_array();

	for (size_t i = 0; i < h->n; i++) {
		json_t *o = json_object();

		json_object_set_new(o, "cgroup", json_text(h->rows[i].cgroup));
		json_object_set_new(o, "container", waitcell_text(h->rows[i].container));
		json_object_set_new(o, "periods", json_integer((json_int_t)h->rows[i].periods));
		json_object_set_new(o, "throttled", json_integer((json_int_t)h->rows[i].throttled));
		json_object_set_new(o, "throttled_ns",
				    json_integer((json_int_t)h->rows[i].throttled_ns));
		json_array_append_new(list, o);
	}
	return list;
}

json_t *waitcell_text(const char *s)
{
	return s && *s ? json_text(s) : json_null();
}

json_t *waitcell_number(uint64_t v, bool known)
{
	return known ? json_integer((json_int_t)v) : json_null();
}
