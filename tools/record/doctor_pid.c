/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_pid: why the stacks of one process are complete, or not. What it has mapped is asked of
 * sonde-maps
 * (--explain); how its stacks ended, of the newest recording that has samples of its program.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/sibling.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"
#include "schema/store/read/reader.h"
#include "tools/cli/helper.h"
#include "tools/cli/verb.h"
#include "tools/fold/endings.h"
#include "tools/fold/unread.h"
#include "tools/print/json.h"
#include "tools/record/doctor.h"
#include "tools/select/select.h"

static const char *text_of(const json_t *o, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));

	return s ? s : "";
}

static uint64_t number_of(const json_t *o, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(o, name));

	return n > 0 ? (uint64_t)n : 0;
}

static int ask(uint64_t pid, const char *store, json_t **out, struct err *e)
{
	struct strbuf said cleanup_strbuf = STRBUF_INIT;
	char path[PATH_MAX], number[24];
	char *argv[] = {path, "--explain", number, "--store", (char *)store, NULL};
	int status = 0, rc;

	snprintf(number, sizeof(number), "%llu", (unsigned long long)pid);
	rc = sibling_find("sonde-maps", path, e);
	if (!rc)
		rc = helper_output(argv, &said, &status, e);
	if (rc < 0)
		return rc;
	*out = json_loadb(strbuf_str(&said), said.len, 0, NULL);
	if (*out)
		return 0;
	rc = WIFEXITED(status) ? WEXITSTATUS(status) : 0; /* it has said itself what is wrong */
	err_set(e, -EIO, rc ? (enum sonde_exit)rc : EXIT_RUNTIME, "process %s cannot be explained",
		number);
	if (rc != EXIT_USAGE)
		err_fix(e, "sudo sonde doctor --pid %s", number);
	return -EIO;
}

static void add_file(json_t *rows, const json_t *f)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	const char *path = text_of(f, "path"), *slash = strrchr(path, '/'),
		   *state = text_of(f, "state");
	const char *name = slash && slash[1] ? slash + 1 : path;
	uint64_t rows_n = number_of(f, "rows"), bad = number_of(f, "unsupported");
	char n[32], b[32];

	if (!strcmp(state, "ready")) {
		strbuf_addf(&text, "%s rows", units_count(rows_n, n, sizeof(n)));
		if (bad)
			strbuf_addf(&text, "; %s places that unwind rows cannot express",
				    units_count(bad, b, sizeof(b)));
		json_array_append_new(rows, doctor_item(NULL, name, "ok", strbuf_str(&text), NULL));
		return;
	}
	if (!strcmp(state, "pending"))
		strbuf_addstr(&text, "its rows are still being made");
	else if (!strcmp(state, "refused"))
		strbuf_addf(&text, "no rows: %s; frame pointers are used", text_of(f, "reason"));
	else
		strbuf_addstr(&text, "it describes no stack frames; frame pointers are used");
	json_array_append_new(rows, doctor_item(NULL, name, "warn", strbuf_str(&text), NULL));
}

/* How frames of scripts get their names, where the file is an interpreter. `another`: another file
 * is one that is known. `mapped`: the process names its compiled code itself. */
static void add_runtime(json_t *rows, const json_t *f, bool another, bool mapped)
{
	const json_t *r = json_object_get(f, "runtime");
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	bool walked = json_is_true(json_object_get(r, "walked"));
	const char *version = text_of(r, "version"), *without = text_of(r, "without");
	const struct unread *u = walked ? NULL : unread_of(text_of(r, "name"));
	bool named = u && u->fix && mapped;

	if (!r || (!walked && another))
		return;
	if (*version)
		strbuf_addf(&text, "version %s: ", version);
	if (walked)
		strbuf_addstr(
			&text,
			"script frames have function, file and line, read from the process's own memory");
	if (walked && *without)
		strbuf_addf(&text, "; without %s: this version's tables do not name them", without);
	if (named)
		strbuf_addstr(&text, "functions have the names that the process writes for perf");
	else if (u)
		strbuf_addf(&text, "%s%s", u->native ? "" : "no script frames: ", u->why);
	json_array_append_new(
		rows, doctor_item(NULL, text_of(r, "name"),
				  named || (walked && !*without) || (u && !u->fix) ? "ok" : "warn",
				  strbuf_str(&text), u && !named ? u->fix : NULL));
}

static bool is_mapped(const json_t *process)
{
	const char *state = text_of(
		json_object_get(json_object_get(process, "anonymous"), "perf_map"), "state");

	return !strcmp(state, "read") || !strcmp(state, "cut");
}

/* A program that only starts a library is left out if the library is listed. */
static void add_runtimes(json_t *rows, const json_t *files, bool mapped)
{
	bool walked = false;
	json_t *f;
	size_t i;

	json_array_foreach (files, i, f)
		walked |= json_is_true(json_object_get(json_object_get(f, "runtime"), "walked"));
	json_array_foreach (files, i, f)
		add_runtime(rows, f, walked, mapped);
}

/* Requests inside TLS: where they are read, or why not. */
static void add_tls(json_t *rows, const json_t *f)
{
	const json_t *t = json_object_get(f, "tls");
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	const char *read = text_of(t, "read"), *path = text_of(f, "path"),
		   *slash = strrchr(path, '/');
	bool blind = !strcmp(read, "no");

	if (!t)
		return;
	if (blind)
		strbuf_addf(&text, "%s is not read: %s", text_of(t, "library"), text_of(t, "why"));
	else
		strbuf_addf(&text, "%s, read at %llu places in %s%s", text_of(t, "library"),
			    (unsigned long long)number_of(t, "probes"), slash ? slash + 1 : path,
			    !strcmp(read, "emulated") ?
				    ", on instructions that the kernel emulates" :
				    "; some of them cost a debug trap each time");
	json_array_append_new(rows, doctor_item(NULL, "requests in TLS", blind ? "warn" : "ok",
						strbuf_str(&text), NULL));
}

static void add_anonymous(json_t *rows, const json_t *a)
{
	const json_t *map = json_object_get(a, "perf_map");
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	uint64_t regions = number_of(a, "regions");
	const char *state = text_of(map, "state"), *fix = text_of(map, "fix");
	bool read = !strcmp(state, "read"), cut = !strcmp(state, "cut");
	char bytes[32], n[32];

	if (!regions)
		return;
	strbuf_addf(&text, "%s of code without a file, in %llu region%s: frame pointers are used; ",
		    units_bytes(number_of(a, "bytes"), bytes, sizeof(bytes)),
		    (unsigned long long)regions, regions == 1 ? "" : "s");
	if (read || cut)
		strbuf_addf(&text, "%s names from its %s",
			    units_count(number_of(map, "names"), n, sizeof(n)),
			    text_of(map, "kind"));
	if (cut)
		strbuf_addf(&text, ", which is %s", text_of(map, "reason"));
	if (!read && !cut && *text_of(map, "reason"))
		strbuf_addf(&text,
			    "no names (perf map or jitdump: %s, %s; 0 of its entries are used)",
			    state, text_of(map, "reason"));
	else if (!read && !cut)
		strbuf_addf(&text, "no names (perf map: %s)", state);
	json_array_append_new(rows, doctor_item(NULL, "[jit]", read ? "ok" : "warn",
						strbuf_str(&text), read ? NULL : fix));
}

struct of_program {
	const char *exe;
	struct endings endings;
};

static int add_if_its(void *ctx, const struct store_ending_row *r)
{
	struct of_program *p = ctx;

	return strcmp(r->executable, p->exe) ? 0 : endings_add(&p->endings, r);
}

/* Of the newest recording that has some; its number, 0: none has. */
static int64_t read_endings(const char *store, struct of_program *p)
{
	struct select_recording *recs = NULL;
	int64_t number = 0;
	size_t n = 0;

	if (select_recordings(store, &recs, &n, NULL))
		return 0;
	for (size_t i = n; i-- > 0 && !number;) {
		for (size_t k = 0; k < recs[i].n_runs; k++) {
			struct store_segment *s = NULL;

			if (!store_segment_open(recs[i].runs[k].segment, &s, NULL))
				store_endings(s, 0, INT64_MAX, recs[i].runs[k].run, add_if_its, p,
					      NULL);
			store_segment_close(s);
		}
		number = p->endings.n ? recs[i].number : 0;
	}
	select_recordings_free(recs, n);
	return number;
}

static void add_endings(json_t *rows, const char *store, const json_t *process)
{
	struct of_program p = {.exe = text_of(process, "exe")};
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	int64_t rec = read_endings(store, &p);
	char n[32];

	if (!rec) {
		json_array_append_new(rows, doctor_item(NULL, "recorded stacks", "off",
							"no recording has samples of this program",
							"sudo sonde record -d 10s"));
		return;
	}
	endings_sort(&p.endings);
	strbuf_addf(&text, "%.1f %% of %s complete in rec %lld", 100 * endings_share(&p.endings),
		    units_count(p.endings.n, n, sizeof(n)), (long long)rec);
	for (size_t i = 0; i < p.endings.programs[0].n_cuts && i < 3; i++) {
		const struct endings_cut *c = &p.endings.programs[0].cuts[i];

		strbuf_addf(&text, "%s %s: %s%s%s",
			    i ? "," : "; others:", units_count(c->n, n, sizeof(n)), c->reason,
			    *c->module ? ", in " : "", c->module);
	}
	json_array_append_new(rows, doctor_item(NULL, "recorded stacks",
						endings_share(&p.endings) >= 0.99 ? "ok" : "warn",
						strbuf_str(&text), NULL));
	endings_release(&p.endings);
}

int doctor_pid(struct verb_call *call, uint64_t pid, struct err *e)
{
	json_t *process = NULL, *envelope, *rows, *row;
	int rc = ask(pid, call->store, &process, e);
	size_t i;

	if (rc)
		return rc;
	envelope = json_envelope("doctor", 0, 0);
	rows = json_rows(envelope);
	json_array_foreach (json_object_get(process, "files"), i, row)
		add_file(rows, row);
	add_runtimes(rows, json_object_get(process, "files"), is_mapped(process));
	json_array_foreach (json_object_get(process, "files"), i, row)
		add_tls(rows, row);
	add_anonymous(rows, json_object_get(process, "anonymous"));
	add_endings(rows, call->store, process);
	if (call->json) {
		json_object_set_new(envelope, "process", process);
		return json_print(envelope, stdout, 0);
	}
	printf("process %llu  %s  %s\n", (unsigned long long)pid, text_of(process, "comm"),
	       text_of(process, "exe"));
	json_array_foreach (rows, i, row)
		doctor_print(row);
	json_decref(process);
	json_decref(envelope);
	return 0;
}
