/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/output.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "tools/flame_html.h"
#include "tools/flame_json.h"
#include "tools/folded.h"
#include "tools/pprof.h"

static const struct {
	const char *end;
	enum output_form form;
} FORMS[] = {
	{".html", OUTPUT_HTML}, {".htm", OUTPUT_HTML}, {".folded", OUTPUT_FOLDED}, {".collapsed", OUTPUT_FOLDED},
	{".pb.gz", OUTPUT_PPROF}, {".pprof", OUTPUT_PPROF}, {".json", OUTPUT_JSON},
};

static const char *const GROUPS[] = {
	[FOLD_BY_NONE] = "none", [FOLD_BY_CONTAINER] = "container", [FOLD_BY_PROCESS] = "process",
	[FOLD_BY_THREAD] = "thread",
};

int output_form_of(const char *path, enum output_form *form, struct err *e)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < sizeof(FORMS) / sizeof(*FORMS); i++) {
		size_t end = strlen(FORMS[i].end);

		if (len > end && !strcasecmp(path + len - end, FORMS[i].end)) {
			*form = FORMS[i].form;
			return 0;
		}
	}
	err_set(e, -EINVAL, EXIT_USAGE,
		"cannot tell the format of '%s' from its name: known are .html, .folded, .pb.gz (pprof) and .json", path);
	err_fix(e, "sonde flame -o x.html");
	return -EINVAL;
}

int output_group_of(const char *name, enum fold_group *group, struct err *e)
{
	*group = FOLD_BY_NONE;
	for (size_t i = 0; name && i < sizeof(GROUPS) / sizeof(*GROUPS); i++)
		if (!strcmp(name, GROUPS[i])) {
			*group = (enum fold_group)i;
			return 0;
		}
	if (!name)
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "unknown group '%s': known are none, container, process and thread", name);
	err_fix(e, "sonde flame --group container");
	return -EINVAL;
}

static int print_form(enum output_form form, const struct selection *sel, enum fold_group group, const struct fold *f,
		      FILE *out, struct err *e)
{
	struct flame_page page = {.f = f, .what = sel->what, .range = sel->range, .filters = sel->filter_text,
				  .group = group == FOLD_BY_NONE ? "" : GROUPS[group], .self = sel->self};

	switch (form) {
	case OUTPUT_HTML:
		return flame_html_write(&page, out, e);
	case OUTPUT_FOLDED:
		folded_write(f, out);
		return 0;
	case OUTPUT_PPROF:
		pprof_write(f, out); /* a stream that refuses bytes says so at the end */
		return 0;
	case OUTPUT_JSON:
		flame_json_write(f, out);
		return 0;
	}
	return -EINVAL;
}

/* What the reader of a pprof file chooses for himself. */
static int not_for_pprof(const struct fold_opts *o, struct err *e)
{
	if (o->group != FOLD_BY_NONE) {
		err_set(e, -EINVAL, EXIT_USAGE, "a pprof file has no groups: it has labels (container, comm, pid, thread, tid)");
		err_fix(e, "sonde flame -o x.pb.gz; go tool pprof -tags x.pb.gz");
		return -EINVAL;
	}
	if (o->lines) {
		err_set(e, -EINVAL, EXIT_USAGE, "a pprof file has its lines in any case: --lines is for the other forms");
		err_fix(e, "sonde flame -o x.pb.gz; go tool pprof -lines -top x.pb.gz");
		return -EINVAL;
	}
	return 0;
}

int output_write(enum output_form form, const struct selection *sel, const struct fold_opts *asked, FILE *out,
		 struct err *e)
{
	struct fold_opts opts = *asked;
	enum fold_group group = opts.group;
	struct fold *f = NULL;
	int ret = form == OUTPUT_PPROF ? not_for_pprof(asked, e) : 0;

	if (ret)
		return ret;
	opts.leaves = opts.with = form == OUTPUT_PPROF;
	ret = fold_make(sel, &opts, &f, e);
	if (ret)
		return ret;
	ret = print_form(form, sel, group, f, out, e);
	fold_free(f);
	return ret;
}
