/* SPDX-License-Identifier: Apache-2.0 */
/* sonde disk: what disks did in a range, who asked them to, and what was slow (tools/disk). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/verb.h"
#include "tools/disk/diskprint.h"
#include "tools/print/json.h"
#include "tools/print/table.h"
#include "tools/print/term.h"
#include "tools/select/select.h"

struct disk_args {
	uint64_t rows;
	const char *by;
	bool slow, fsync, opens, files, calls, locks, full, deleted;
};

/* clang-format off */
static const struct option DISK_OPTIONS[] = {
	{"by", 0, OPTION_STRING, "WHAT", "command (default), process or container", offsetof(struct disk_args, by)},
	{"slow", 0, OPTION_FLAG, NULL, "show slow single requests (50 ms and longer), and where threads waited for them", offsetof(struct disk_args, slow)},
	{"fsync", 0, OPTION_FLAG, NULL, "show calls that wait until a file is on its disk, also while they wait", offsetof(struct disk_args, fsync)},
	{"opens", 0, OPTION_FLAG, NULL, "show opens of files that failed, by path", offsetof(struct disk_args, opens)},
	{"files", 0, OPTION_FLAG, NULL, "show which files disks read and wrote, and for whom", offsetof(struct disk_args, files)},
	{"calls", 0, OPTION_FLAG, NULL, "show reads and writes of files as programs felt them, by io_uring too", offsetof(struct disk_args, calls)},
	{"locks", 0, OPTION_FLAG, NULL, "show waits for locks of files, and who had them", offsetof(struct disk_args, locks)},
	{"full", 0, OPTION_FLAG, NULL, "show which file systems fill, when they will be full, and what grew", offsetof(struct disk_args, full)},
	{"deleted", 0, OPTION_FLAG, NULL, "show deleted files that programs have open, and how much they take", offsetof(struct disk_args, deleted)},
	{"number", 'n', OPTION_MOST, "N", "how many rows (default 30; 0: all)", offsetof(struct disk_args, rows)},
	{0},
};
/* clang-format on */

static const char *const DISK_EXAMPLES[] = {
	"sonde disk --slow --last 24h",
	"sonde disk web --calls --last 1h",
	"sonde disk --deleted",
	NULL,
};

static int missing(const struct verb_call *call, bool known, const char *what, struct err *e)
{
	return select_nothing(call->sel, known ? NULL : "disk", "requests of disks", what,
			      "sonde disk --last 1h", e);
}

/* ---- disks, then who ---- */

static int use_json(const struct verb_call *call, const struct diskuse *u, size_t n)
{
	json_t *o = json_envelope("disk", call->sel->from_ns, call->sel->to_ns),
	       *who = json_array();

	for (size_t i = 0; i < u->n_disks; i++)
		json_array_append_new(json_rows(o), diskprint_disk_json(u, &u->disks[i]));
	for (size_t i = 0; i < n; i++)
		json_array_append_new(who, diskprint_who_json(u, &u->who[i]));
	json_bound(o, u->n_disks);
	json_bound_list(o, "who", who, u->n_who);
	json_object_set_new(o, "seconds", json_real(u->seconds));
	return json_print(o, stdout, 1);
}

static void use_text(const struct verb_call *call, const struct diskuse *u, size_t n)
{
	struct table *disks = diskprint_disks(u);

	table_print(disks, stdout, call->wide ? 0 : term_width(stdout));
	table_free(disks);
	putchar('\n');
	table_answer(diskprint_who(u, n), n, u->n_who, call->wide, call->quiet);
}

static int use_run(struct verb_call *call, const struct disk_args *a, enum diskuse_by by,
		   struct err *e)
{
	struct diskuse u;
	int rc = diskuse_read(call->sel, by, &u, e);

	if (!rc && !u.n_disks)
		rc = missing(call, u.known, "no requests of disks", e);
	else if (!rc && call->json)
		rc = use_json(call, &u, table_rows(a->rows, u.n_who));
	else if (!rc)
		use_text(call, &u, table_rows(a->rows, u.n_who));
	diskuse_release(&u);
	return rc;
}

/* ---- rows ---- */

static int rows_json(const struct verb_call *call, const struct diskrows *r,
		     enum diskrows_what what, size_t n)
{
	json_t *o = json_envelope("disk", call->sel->from_ns, call->sel->to_ns);

	for (size_t i = 0; i < n; i++)
		json_array_append_new(json_rows(o), diskprint_row_json(&r->rows[i], what));
	json_bound(o, r->n);
	return json_print(o, stdout, 1);
}

static int rows_run(struct verb_call *call, const struct disk_args *a, enum diskrows_what what,
		    struct err *e)
{
	static const char *const nothing[] = {
		[DISKROWS_SLOW] = "no requests of disks",
		[DISKROWS_SYNCS] = "no calls that wait for a disk",
		[DISKROWS_OPENS] = "no opens that failed",
		[DISKROWS_CALLS] = "no reads and writes of files",
		[DISKROWS_LOCKS] = "no waits for locks of files",
	};
	struct diskrows r;
	int rc = diskrows_read(call->sel, what, &r, e);

	if (!rc && !r.n)
		rc = missing(call, r.known, nothing[what], e);
	else if (!rc && call->json)
		rc = rows_json(call, &r, what, table_rows(a->rows, r.n));
	else if (!rc)
		table_answer(diskprint_rows(&r, what, table_rows(a->rows, r.n)),
			     table_rows(a->rows, r.n), r.n, call->wide, call->quiet);
	diskrows_release(&r);
	return rc;
}

/* ---- files ---- */

static int files_run(struct verb_call *call, const struct disk_args *a, struct err *e)
{
	struct diskfiles f;
	int rc = diskfiles_read(call->sel, &f, e);
	size_t n = table_rows(a->rows, f.n);

	if (!rc && !f.n) {
		rc = missing(call, f.known, "no files that disks read or wrote", e);
	} else if (!rc && call->json) {
		json_t *o = json_envelope("disk", call->sel->from_ns, call->sel->to_ns);

		for (size_t i = 0; i < n; i++)
			json_array_append_new(json_rows(o), diskprint_file_json(&f.rows[i]));
		json_bound(o, f.n);
		rc = json_print(o, stdout, 1);
	} else if (!rc) {
		table_answer(diskprint_files(&f, n), n, f.n, call->wide, call->quiet);
	}
	diskfiles_release(&f);
	return rc;
}

static int full_run(struct verb_call *call, const struct disk_args *a, struct err *e)
{
	struct diskfull f;
	int rc = diskfull_read(call->sel, &f, e);
	size_t n = table_rows(a->rows, f.n);

	if (!rc && !f.n) {
		rc = select_nothing(call->sel, f.known ? NULL : "host", "file systems",
				    "no file systems", "sonde disk --full --last 1h", e);
	} else if (!rc && call->json) {
		json_t *o = json_envelope("disk", call->sel->from_ns, call->sel->to_ns);

		for (size_t i = 0; i < n; i++)
			json_array_append_new(json_rows(o), diskprint_full_json(&f.mounts[i]));
		json_bound(o, f.n);
		rc = json_print(o, stdout, 1);
	} else if (!rc) {
		table_answer(diskprint_full(&f, n), n, f.n, call->wide, call->quiet);
	}
	diskfull_release(&f);
	return rc;
}

static int deleted_run(struct verb_call *call, const struct disk_args *a, struct err *e)
{
	struct diskhelds h;
	int rc = diskhelds_read(call->sel, &h, e);
	size_t n = table_rows(a->rows, h.n);

	if (!rc && !h.n) {
		rc = missing(call, h.known, "no deleted files that programs have open", e);
	} else if (!rc && call->json) {
		json_t *o = json_envelope("disk", call->sel->from_ns, call->sel->to_ns);

		for (size_t i = 0; i < n; i++)
			json_array_append_new(json_rows(o), diskprint_held_json(&h.rows[i]));
		json_bound(o, h.n);
		json_object_set_new(o, "bytes", json_integer((json_int_t)h.bytes));
		rc = json_print(o, stdout, 1);
	} else if (!rc) {
		table_answer(diskprint_held(&h, n), n, h.n, call->wide, call->quiet);
	}
	diskhelds_release(&h);
	return rc;
}

static int args_check(const struct disk_args *a, enum diskuse_by *by, struct err *e)
{
	int questions = a->slow + a->fsync + a->opens + a->files + a->calls + a->locks + a->full +
			a->deleted;

	*by = DISKUSE_BY_COMMAND;
	if (questions > 1 || (a->by && questions)) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"--by, --slow, --fsync, --opens, --files, --calls, --locks, --full and --deleted ask different questions: give one");
		err_fix(e, "sonde disk --slow");
		return -EINVAL;
	}
	if (!a->by || diskuse_by(a->by, by))
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "--by %s: must be one of " DISKUSE_BY_NAMES, a->by);
	err_fix(e, "sonde disk --by container");
	return -EINVAL;
}

static int disk_run(struct verb_call *call, struct err *e)
{
	const struct disk_args *a = call->args;
	enum diskuse_by by;
	int rc = args_check(a, &by, e);

	if (rc)
		return rc;
	if (a->slow)
		rc = rows_run(call, a, DISKROWS_SLOW, e);
	else if (a->fsync)
		rc = rows_run(call, a, DISKROWS_SYNCS, e);
	else if (a->opens)
		rc = rows_run(call, a, DISKROWS_OPENS, e);
	else if (a->calls)
		rc = rows_run(call, a, DISKROWS_CALLS, e);
	else if (a->locks)
		rc = rows_run(call, a, DISKROWS_LOCKS, e);
	else if (a->files)
		rc = files_run(call, a, e);
	else if (a->full)
		rc = full_run(call, a, e);
	else if (a->deleted)
		rc = deleted_run(call, a, e);
	else
		rc = use_run(call, a, by, e);
	return verb_flush(rc, e);
}

const struct verb verb_disk = {
	.name = "disk",
	.summary =
		"show disks: how much, how slow and how busy, who asked, which files, what fills and what failed",
	.usage = "[WHAT] [--by WHAT | --slow | --fsync | --opens | --files | ...] [-n N]",
	.examples = DISK_EXAMPLES,
	.options = DISK_OPTIONS,
	.args_size = sizeof(struct disk_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = disk_run,
};
