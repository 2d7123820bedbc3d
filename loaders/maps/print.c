/* SPDX-License-Identifier: Apache-2.0 */
/* Each message becomes a JSON object; the text form prints that object's members. */
#include "loaders/maps/print.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "loaders/lib/host/maps/mapspack.h"
#include "schema/base/strbuf.h"

static void put_int(json_t *o, const char *name, uint64_t v)
{
	json_object_set_new(o, name, json_integer((json_int_t)v));
}

static void put_str(json_t *o, const char *name, const char *s)
{
	struct strbuf b = STRBUF_INIT;

	strbuf_addutf8(&b, s, __builtin_strlen(s));
	json_object_set_new(o, name, json_string(strbuf_str(&b)));
	strbuf_release(&b);
}

static void put_hex(json_t *o, const char *name, uint64_t v)
{
	char s[32];

	snprintf(s, sizeof(s), "0x%" PRIx64, v);
	json_object_set_new(o, name, json_string(s));
}

static void put_process(json_t *o, const struct mapspack_msg *msg)
{
	const struct mp_process *m = &msg->m.process;

	put_int(o, "time_ns", m->time_ns);
	put_int(o, "tgid", m->tgid);
	put_int(o, "start_ns", m->start_ns);
	put_int(o, "exec_id", m->exec_id);
	put_int(o, "ppid", m->ppid);
	put_int(o, "uid", m->uid);
	put_int(o, "nspid", m->nspid);
	if (m->from_tgid)
		put_int(o, "from_tgid", m->from_tgid);
	put_int(o, "cgroup_id", m->cgroup_id);
	put_str(o, "comm", msg->str[0]);
	put_str(o, "exe", msg->str[1]);
	put_str(o, "args", msg->str[2]);
	put_str(o, "cgroup", msg->str[3]);
}

static void put_map(json_t *o, const struct mp_map *m)
{
	put_int(o, "time_ns", m->time_ns);
	put_int(o, "tgid", m->tgid);
	put_int(o, "start_ns", m->start_ns);
	put_int(o, "exec_id", m->exec_id);
	put_hex(o, "start", m->start);
	put_hex(o, "end", m->end);
	put_hex(o, "offset", m->offset);
	put_int(o, "image", m->image);
}

static void put_image(json_t *o, const struct mapspack_msg *msg)
{
	const struct mp_image *m = &msg->m.image;

	put_int(o, "id", m->id);
	put_int(o, "kind", m->kind);
	put_int(o, "major", m->major);
	put_int(o, "minor", m->minor);
	put_int(o, "ino", m->ino);
	put_int(o, "generation", m->generation);
	put_str(o, "path", msg->str[0]);
}

static void put_cost(json_t *o, const struct mp_cost *m)
{
	put_int(o, "cpu_ns", m->cpu_ns);
	put_int(o, "index_cpu_ns", m->index_cpu_ns);
	put_int(o, "bpf_ns", m->bpf_ns);
	put_int(o, "bpf_runs", m->bpf_runs);
	put_int(o, "rss_bytes", m->rss_bytes);
	put_int(o, "private_bytes", m->private_bytes);
	put_int(o, "map_bytes", m->map_bytes);
	put_int(o, "rows_used", m->rows_used);
	put_int(o, "mappings_used", m->mappings_used);
	put_int(o, "images_used", m->images_used);
	put_int(o, "rows_evicted", m->rows_evicted);
	put_int(o, "tables_refused", m->tables_refused);
	put_int(o, "rows_cpu_ns", m->rows_cpu_ns);
}

static void put_used(json_t *o, const struct mp_used *m)
{
	put_int(o, "time_ns", m->time_ns);
	put_int(o, "tgid", m->tgid);
	put_int(o, "start_ns", m->start_ns);
	put_int(o, "cpu_ns", m->cpu_ns);
	put_int(o, "user_ns", m->user_ns);
	put_int(o, "system_ns", m->system_ns);
	put_int(o, "runq_ns", m->runq_ns);
	put_int(o, "read_bytes", m->read_bytes);
	put_int(o, "write_bytes", m->write_bytes);
	put_int(o, "minflt", m->minflt);
	put_int(o, "majflt", m->majflt);
	put_int(o, "maxrss_bytes", m->maxrss_bytes);
	put_int(o, "flags", m->flags);
}

static const char *fill(json_t *o, const struct mapspack_msg *msg)
{
	switch (msg->type) {
	case MP_SEEDED:
		return "seeded";
	case MP_PROCESS:
		put_process(o, msg);
		return "process";
	case MP_EXIT:
		put_int(o, "time_ns", msg->m.exit.time_ns);
		put_int(o, "tgid", msg->m.exit.tgid);
		put_int(o, "start_ns", msg->m.exit.start_ns);
		put_int(o, "exit_code", msg->m.exit.exit_code);
		put_int(o, "flags", msg->m.exit.flags);
		return "exit";
	case MP_USED:
		put_used(o, &msg->m.used);
		return "used";
	case MP_IMAGE:
		put_image(o, msg);
		return "image";
	case MP_INDEX:
		put_int(o, "id", msg->m.index.id);
		put_int(o, "state", msg->m.index.state);
		put_str(o, "key", msg->str[0]);
		put_str(o, "reason", msg->str[1]);
		return "index";
	case MP_MAP:
		put_map(o, &msg->m.map);
		return "map";
	case MP_WATERMARK:
		put_int(o, "time_ns", msg->m.watermark.time_ns);
		return "watermark";
	case MP_LOST:
		put_int(o, "time_ns", msg->m.lost.time_ns);
		put_int(o, "records", msg->m.lost.records);
		return "lost";
	case MP_CONTAINER:
		put_str(o, "id", msg->str[0]);
		put_str(o, "name", msg->str[1]);
		put_str(o, "image", msg->str[2]);
		put_str(o, "project", msg->str[3]);
		put_str(o, "service", msg->str[4]);
		put_str(o, "started", msg->str[6]);
		put_int(o, "restarts", msg->m.container.restarts);
		return "container";
	case MP_COST:
		put_cost(o, &msg->m.cost);
		return "cost";
	default:
		return "other";
	}
}

static void print_text(const char *type, json_t *o)
{
	const char *name;
	json_t *v;

	fputs(type, stdout);
	json_object_foreach (o, name, v) {
		char *s = json_dumps(v, JSON_ENCODE_ANY);

		printf(" %s=%s", name, s);
		free(s);
	}
	putchar('\n');
}

void print_message(const struct mapspack_msg *msg, bool json)
{
	json_t *o = json_object();
	const char *type = fill(o, msg);

	if (json) {
		json_object_set_new(o, "type", json_string(type));
		json_dumpf(o, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		print_text(type, o);
	}
	json_decref(o);
}
