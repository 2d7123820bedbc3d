/* SPDX-License-Identifier: Apache-2.0 */
/* sonde export: writes the selection in formats of other programs, or the store itself as plain
 * files. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/sibling.h"
#include "schema/base/units.h"
#include "tools/cli/helper.h"
#include "tools/cli/verb.h"
#include "tools/fold/fold_kind.h"
#include "tools/formats/export_db.h"
#include "tools/page/output.h"
#include "tools/print/outfile.h"
#include "tools/print/term.h"

struct export_args {
	const char *type;
	const char *output;
	bool lines, no_inline, interpreter, schema;
};

/* clang-format off */
static const struct option EXPORT_OPTIONS[] = {
	FOLD_KIND_OR_WALL_OPTION(struct export_args, type),
	{"output", 'o', OPTION_STRING, "FILE", "output file (default: standard output); for db: a file or a folder",
	 offsetof(struct export_args, output)},
	{"lines", 0, OPTION_FLAG, NULL, "folded, json: separate functions by line: name (file.c:12)",
	 offsetof(struct export_args, lines)},
	{"no-inline", 0, OPTION_FLAG, NULL, "count inlined functions as their caller",
	 offsetof(struct export_args, no_inline)},
	{"interpreter", 0, OPTION_FLAG, NULL, "show the interpreter's own frames among those of its scripts", offsetof(struct export_args, interpreter)},
	{"schema", 0, OPTION_FLAG, NULL, "clickhouse: print the tables that sonde-push fills there", offsetof(struct export_args, schema)},
	{0},
};
/* clang-format on */

static const char *const EXPORT_EXAMPLES[] = {
	"sonde export pprof -o cpu.pb.gz",
	"sonde export folded nginx --last 1h | flamegraph.pl > nginx.svg",
	"sonde export db --last 1d -o copy/",
	"sonde export clickhouse --schema > tables.sql",
	NULL,
};

static const struct {
	const char *name;
	enum output_form form;
} KINDS[] = {{"pprof", OUTPUT_PPROF},
	     {"folded", OUTPUT_FOLDED},
	     {"json", OUTPUT_JSON},
	     {"speedscope", OUTPUT_SPEEDSCOPE},
	     {"perf-script", OUTPUT_PERFSCRIPT}};

static void say_written(const struct verb_call *call, const char *path, uint64_t bytes)
{
	char size[32];

	if (!call->quiet)
		fprintf(stderr, "wrote %s (%s)\n", path, units_bytes(bytes, size, sizeof(size)));
}

static int export_fold(struct verb_call *call, enum output_form form, const char *path,
		       struct err *e)
{
	const struct export_args *a = call->args;
	struct fold_opts opts = {
		.lines = a->lines, .no_inline = a->no_inline, .interpreter = a->interpreter};
	cleanup_outfile struct outfile out = OUTFILE_INIT;
	uint64_t bytes = 0;
	int ret;

	if (!path && form == OUTPUT_PPROF && term_is_tty(stdout)) {
		err_set(e, -EINVAL, EXIT_USAGE, "refusing to write a pprof file to the terminal");
		err_fix(e, "sonde export pprof -o cpu.pb.gz");
		return -EINVAL;
	}
	ret = fold_kind_or_wall_of(a->type, call->sel, &opts, e);
	if (!ret)
		ret = outfile_open(&out, path, e);
	if (!ret)
		ret = output_write(form, call->sel, &opts, &(struct output_look){0}, out.f, e);
	if (!ret)
		ret = outfile_commit(&out, &bytes, e);
	if (!ret && out.path)
		say_written(call, out.path, bytes);
	return ret;
}

static int export_store(struct verb_call *call, const char *path, struct err *e)
{
	uint64_t bytes = 0;
	int ret;

	if (!path && term_is_tty(stdout)) {
		err_set(e, -EINVAL, EXIT_USAGE, "refusing to write a database to the terminal");
		err_fix(e, "sonde export db -o copy.db");
		return -EINVAL;
	}
	ret = export_db(call->sel, path, &bytes, e);
	if (!ret && path)
		say_written(call, path, bytes);
	return ret;
}

/* sonde-push sends the rows, so it knows the tables. */
static int export_schema(struct verb_call *call, struct err *e)
{
	const struct export_args *a = call->args;
	char path[PATH_MAX];
	char *argv[] = {path, (char *)"--schema", (char *)"--store", (char *)call->store, NULL};
	int rc = sibling_find("sonde-push", path, e);

	if (!a->schema) {
		rc = err_set(
			e, -EINVAL, EXIT_USAGE,
			"export prints only the ClickHouse tables (--schema); sonde-push sends the rows");
		err_fix(e, "sonde export clickhouse --schema | clickhouse-client -n");
	}
	return rc ? rc : helper_run(argv, &call->status, e);
}

static int export_run(struct verb_call *call, struct err *e)
{
	const struct export_args *a = call->args;
	const char *kind = call->n_words ? call->words[0] : NULL;

	if (kind && !strcmp(kind, "db"))
		return export_store(call, a->output, e);
	if (kind && !strcmp(kind, "clickhouse"))
		return export_schema(call, e);
	for (size_t i = 0; kind && i < ARRAY_SIZE(KINDS); i++)
		if (!strcmp(kind, KINDS[i].name))
			return export_fold(call, KINDS[i].form, a->output, e);
	if (kind)
		err_set(e, -EINVAL, EXIT_USAGE,
			"unknown format '%s' (known: pprof, folded, speedscope, perf-script, json, db and clickhouse)",
			kind);
	else
		err_set(e, -EINVAL, EXIT_USAGE,
			"name a format: pprof, folded, speedscope, perf-script, json, db or clickhouse");
	err_fix(e, "sonde export pprof -o cpu.pb.gz");
	return -EINVAL;
}

const struct verb verb_export = {
	.name = "export",
	.summary =
		"convert recorded data for other programs: pprof, folded, speedscope, perf-script, json, db",
	.usage = "pprof|folded|speedscope|perf-script|json|db|clickhouse [WHAT] [-o FILE]",
	.examples = EXPORT_EXAMPLES,
	.options = EXPORT_OPTIONS,
	.args_size = sizeof(struct export_args),
	.uses = VERB_SELECT | VERB_HOSTS | VERB_SELECT_WORD | VERB_OWN_WORD,
	.run = export_run,
};
