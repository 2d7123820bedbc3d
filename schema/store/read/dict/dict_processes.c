/* SPDX-License-Identifier: Apache-2.0 */
/* dict_processes: processes of a dictionary, all or some; see dict_rows.h. */
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/model/argshare.h"
#include "schema/store/read/dict/dict_rows.h"

const struct store_process_row *store_dict_process(const struct store_dict *d, int64_t id)
{
	return id > 0 && (uint64_t)id < d->n_processes && d->processes[id].present ?
		       &d->processes[id] :
		       NULL;
}

struct process_parts {
	const char **text;
	size_t n_text;
	struct container {
		const char *name, *runtime, *runtime_id, *image, *project, *service;
	} * containers;
	size_t n_containers;
	struct strbuf args;
};

static void text_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	struct process_parts *p = ctx;

	p->text[id] = dict_rows_text(s, r, 1);
}

static void container_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	struct process_parts *p = ctx;

	p->containers[id] = (struct container){dict_rows_text(s, r, 1), dict_rows_text(s, r, 2),
					       dict_rows_text(s, r, 3), dict_rows_text(s, r, 4),
					       dict_rows_text(s, r, 5), dict_rows_text(s, r, 6)};
}

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static const char *text_of(const struct process_parts *p, const struct dict_row *r, int col)
{
	return or_empty(p->text[dict_rows_id(r, col, p->n_text)]);
}

/* The view `processes` has it too, but looks up each text by itself. */
static const char *args_of(struct store_segment *s, struct process_parts *p,
			   const struct dict_row *r, int col)
{
	const char *own = dict_rows_raw(r, col + 2);

	strbuf_reset(&p->args);
	argshare_whole(text_of(p, r, col), dict_rows_u32(r, col + 1), or_empty(own),
		       dict_rows_u32(r, col + 3), &p->args);
	return dict_rows_keep(&s->strings, strbuf_str(&p->args), p->args.len);
}

static void process_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	struct process_parts *p = ctx;
	const struct container *c = &p->containers[dict_rows_id(r, 10, p->n_containers)];

	s->processes[id] = (struct store_process_row){
		.pid = dict_rows_u32(r, 1),
		.ppid = dict_rows_u32(r, 2),
		.uid = dict_rows_u32(r, 3),
		.exec_id = dict_rows_u32(r, 4),
		.start_ns = dict_rows_int(r, 5),
		.comm = dict_rows_text(s, r, 6),
		.exe = text_of(p, r, 7),
		.cgroup = text_of(p, r, 8),
		.unit = text_of(p, r, 9),
		.args = args_of(s, p, r, 12),
		.container = or_empty(c->name && *c->name ? c->name : s->host),
		.container_id = or_empty(c->runtime_id),
		.container_image = or_empty(c->image),
		.runtime = or_empty(c->runtime),
		.project = or_empty(c->project),
		.service = or_empty(c->service),
		.self = dict_rows_int(r, 11) != 0,
		.present = true,
		.end_ns = dict_rows_int(r, 16),
		.how = (enum store_end_how)dict_rows_int(r, 17),
		.status = dict_rows_u32(r, 18),
		.lang = text_of(p, r, 19),
		.lang_runtime = text_of(p, r, 20),
	};
}

#define CONTAINERS "id, name, runtime, runtime_id, image, project, service"
#define PROCESSES                                                                                     \
	"id, pid, ppid, uid, exec_id, start_ns, comm, exe, cgroup, unit, container, self, args_base," \
	" args_keep, args, args_end, end_ns, how, status, lang, runtime"

static const struct store_process_row NOBODY = {.comm = "",
						.exe = "",
						.args = "",
						.cgroup = "",
						.unit = "",
						.container = "",
						.container_id = "",
						.container_image = "",
						.runtime = "",
						.project = "",
						.service = "",
						.lang = "",
						.lang_runtime = ""};

static int parts_begin(struct store_segment *s, struct process_parts *p, struct err *e)
{
	int rc = dict_rows_slots(s, "SELECT max(id) FROM text", &p->n_text, e);

	if (!rc)
		rc = dict_rows_slots(s, "SELECT max(id) FROM container", &p->n_containers, e);
	if (!rc)
		rc = dict_rows_slots(s, "SELECT max(id) FROM process", &s->dict.n_processes, e);
	if (rc)
		return rc;
	p->text = mem_array(p->n_text, sizeof(*p->text));
	p->containers = mem_array(p->n_containers, sizeof(*p->containers));
	s->processes = mem_array(s->dict.n_processes, sizeof(*s->processes));
	rc = reading_views(s, "containers", e);
	return rc ? rc :
		    dict_rows_each(s, CONTAINERS, "containers", p->n_containers, container_row, p,
				   e);
}

static void parts_end(struct process_parts *p)
{
	free(p->text);
	free(p->containers);
	strbuf_release(&p->args);
}

int dict_processes_load(struct store_segment *s, struct err *e)
{
	struct process_parts p = {0};
	int rc = parts_begin(s, &p, e);

	for (size_t i = 0; !rc && i < s->dict.n_processes; i++)
		s->processes[i] = NOBODY;
	if (!rc)
		rc = dict_rows_each(s, "id, value", "text", p.n_text, text_row, &p, e);
	if (!rc)
		rc = dict_rows_each(s, PROCESSES, "process", s->dict.n_processes, process_row, &p,
				    e);
	parts_end(&p);
	return rc;
}

/* --- some of them --- */

struct some {
	struct process_parts parts;
	struct dict_one texts, refs, rows;
	int rc;
	struct err *e;
};

/* The texts that a process has. */
static void refs_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	struct some *x = ctx;

	(void)id;
	for (int col = 1; col < 7 && !x->rc; col++) {
		uint32_t text = dict_rows_id(r, col, x->parts.n_text);

		if (text && !x->parts.text[text])
			x->rc = dict_one_row(s, &x->texts, text, text_row, &x->parts, x->e);
	}
}

int dict_processes_some(struct store_segment *s, const uint8_t *wanted, struct err *e)
{
	struct some x = {.e = e};
	int rc = parts_begin(s, &x.parts, e);

	if (!rc)
		rc = dict_one_open(s, &x.texts, "SELECT id, value FROM text WHERE id = ?1", e);
	if (!rc)
		rc = dict_one_open(
			s, &x.refs,
			"SELECT id, exe, cgroup, unit, args_base, lang, runtime FROM process WHERE id = ?1",
			e);
	if (!rc)
		rc = dict_one_open(s, &x.rows, "SELECT " PROCESSES " FROM process WHERE id = ?1",
				   e);
	if (!rc)
		s->processes[0] = NOBODY;
	for (uint32_t id = 1; !rc && id < s->dict.n_processes; id++) {
		if (!wanted[id])
			continue;
		s->processes[id] = NOBODY;
		rc = dict_one_row(s, &x.refs, id, refs_row, &x, e);
		if (!rc)
			rc = x.rc ? x.rc : dict_one_row(s, &x.rows, id, process_row, &x.parts, e);
	}
	dict_one_close(&x.texts);
	dict_one_close(&x.refs);
	dict_one_close(&x.rows);
	parts_end(&x.parts);
	return rc;
}
