/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/page/flame_pack.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/worker.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/proto.h"
#include "tools/fold/fold_kind.h"
#include "tools/page/diff/diff_pack.h"
#include "tools/print/json.h"
#include "tools/print/zstream.h"

#define uthash_fatal(msg) abort()
#include <uthash.h>

#define RECENT 256 /* a power of two */

struct text {
	const char *str; /* borrowed from the tree */
	uint32_t index;
	UT_hash_handle hh;
};

struct packer {
	const struct flame_tree *t; /* of the current profile, as are the last four */
	struct strbuf columns;
	struct text *texts;
	const struct text *recent[RECENT]; /* by address: modules and files repeat */
	json_t *strings;
	uint32_t n_strings;
	uint32_t *order;  /* packed frame -> tree frame */
	uint32_t *packed; /* tree frame -> packed frame + 1, 0: not used */
	uint32_t n_frames;
};

static uint64_t zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static uint32_t string_index(void *packer, const char *str)
{
	struct packer *p = packer;
	cleanup_strbuf struct strbuf safe = STRBUF_INIT;
	const struct text **recent = &p->recent[hash_u64(HASH_SEED, (uintptr_t)str) % RECENT];
	struct text *t;

	if (*recent && (*recent)->str == str)
		return (*recent)->index;
	HASH_FIND_STR(p->texts, str, t);
	if (t) {
		*recent = t;
		return t->index;
	}
	t = mem_alloc(sizeof(*t));
	t->str = str;
	t->index = p->n_strings++;
	HASH_ADD_KEYPTR(hh, p->texts, t->str, strlen(t->str), t);
	strbuf_addutf8(&safe, str, strlen(str));
	json_array_append_new(p->strings, json_stringn_nocheck(strbuf_str(&safe), safe.len));
	return t->index;
}

static void frames_number(struct packer *p)
{
	const struct flame_tree *t = p->t;

	p->order = mem_array(t->n_frames + 1, sizeof(*p->order));
	p->packed = mem_array(t->n_frames + 1, sizeof(*p->packed));
	for (size_t i = 0; i < t->n_nodes; i++) {
		uint32_t fr = t->nodes[i].frame;

		if (p->packed[fr])
			continue;
		p->order[p->n_frames++] = fr;
		p->packed[fr] = p->n_frames;
	}
}

static void frames_pack(struct packer *p)
{
	const struct fold_frame *fr = p->t->frames;

	for (uint32_t i = 0; i < p->n_frames; i++)
		proto_varint(&p->columns, string_index(p, fr[p->order[i]].name));
	for (uint32_t i = 0; i < p->n_frames; i++)
		proto_varint(&p->columns, string_index(p, fr[p->order[i]].module));
	for (uint32_t i = 0; i < p->n_frames; i++)
		proto_varint(&p->columns, string_index(p, fr[p->order[i]].file));
	for (uint32_t i = 0; i < p->n_frames; i++)
		proto_varint(&p->columns, fr[p->order[i]].line);
	for (uint32_t i = 0; i < p->n_frames; i++) {
		const struct fold_frame *f = &fr[p->order[i]];

		proto_varint(&p->columns, (uint64_t)f->origin | (f->named ? 8 : 0) |
						  (f->inlined ? 16 : 0) |
						  (uint64_t)f->runtime << 5);
	}
}

static void nodes_pack(struct packer *p)
{
	const struct flame_tree *t = p->t;
	uint32_t depth = 0, seen = 0;

	for (size_t i = 0; i < t->n_nodes; i++) {
		proto_varint(&p->columns, zigzag((int64_t)t->nodes[i].depth - depth));
		depth = t->nodes[i].depth;
	}
	for (size_t i = 0; i < t->n_nodes; i++) {
		uint32_t id = p->packed[t->nodes[i].frame]; /* 1 based */

		proto_varint(&p->columns, id > seen ? 0 : seen - id + 1);
		if (id > seen)
			seen = id;
	}
}

static void rows_pack(struct packer *p, const struct flame_rows *r, size_t first_owner,
		      uint64_t period)
{
	uint32_t node = 0, slot = 0;

	for (size_t i = 0; i < r->n_rows; node = r->rows[i++].node)
		proto_varint(&p->columns, r->rows[i].node - node);
	for (size_t i = 0; i < r->n_rows; i++)
		proto_varint(&p->columns, first_owner + r->rows[i].owner);
	for (size_t i = 0; i < r->n_rows; slot = r->rows[i++].slot)
		proto_varint(&p->columns, zigzag((int64_t)r->rows[i].slot - slot));
	for (size_t i = 0; i < r->n_rows; i++)
		proto_varint(&p->columns, r->rows[i].n);
	for (size_t i = 0; i < r->n_rows; i++)
		proto_varint(&p->columns,
			     zigzag((int64_t)(r->rows[i].value - r->rows[i].n * period)));
}

static void set_number(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

static void owners_add(struct packer *p, json_t *owners, const struct flame_rows *r)
{
	for (size_t i = 0; i < r->n_owners; i++) {
		const struct flame_owner *o = &r->owners[i];
		const struct fold_process *process = &r->f->processes[o->process];
		const char *container =
			*process->container ? process->container : process->container_id;
		json_t *a = json_array();

		json_array_append_new(a, json_integer(process->pid));
		json_array_append_new(a, json_integer(o->tid));
		json_array_append_new(a, json_integer(string_index(p, process->comm)));
		json_array_append_new(a, json_integer(string_index(p, o->thread)));
		json_array_append_new(a, json_integer(string_index(p, container)));
		json_array_append_new(owners, a);
	}
}

/* For samples in time; other kinds have their own values. */
static uint64_t period_of(const struct fold *f)
{
	return f->kind->kind == STORE_KIND_CPU && f->unit == STORE_TIME ? f->period_ns : 0;
}

static json_t *covered_pack(const struct flame_rows *r)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < r->n_slots; i++)
		json_array_append_new(a, json_integer((json_int_t)r->covered_ns[i]));
	return a;
}

static void slots_pack(json_t *o, const struct flame_rows *r)
{
	set_number(o, "slots", r->n_slots);
	set_number(o, "slots_from_ns", (uint64_t)r->slots_from_ns);
	set_number(o, "slot_ns", (uint64_t)r->slot_ns);
	json_object_set_new(o, "covered_ns", covered_pack(r));
}

static json_t *sides_pack(struct packer *p, const struct flame_pack_profile *profile,
			  json_t *owners)
{
	json_t *sides = json_array();

	for (size_t i = 0; i < profile->n_sides; i++) {
		json_t *side = json_object();

		rows_pack(p, &profile->sides[i], json_array_size(owners), period_of(profile->f));
		owners_add(p, owners, &profile->sides[i]);
		json_object_set_new(side, "label", json_text(profile->labels[i]));
		set_number(side, "rows", profile->sides[i].n_rows);
		if (profile->diff) {
			const struct fold *f = profile->diff->side[i].f;

			slots_pack(side, &profile->sides[i]);
			set_number(side, "from_ns",
				   (uint64_t)(f->n_slices ? f->slices[0].from_ns : f->from_ns));
			set_number(side, "to_ns",
				   (uint64_t)(f->n_slices ? f->slices[f->n_slices - 1].to_ns :
							    f->to_ns));
		}
		json_array_append_new(sides, side);
	}
	return sides;
}

static json_t *profile_pack(struct packer *p, const struct flame_pack_profile *profile)
{
	const struct store_kind_info *kind = profile->f->kind;
	json_t *j = json_object(), *owners = json_array();

	p->t = profile->t;
	frames_number(p);
	frames_pack(p);
	nodes_pack(p);
	json_object_set_new(j, "type", json_text(kind->name));
	json_object_set_new(j, "title", json_text(kind->what));
	json_object_set_new(j, "counted", json_text(store_kind_counted(kind)));
	json_object_set_new(j, "value_unit", json_text(store_unit_name(profile->f->unit)));
	json_object_set_new(j, "cumulative", json_boolean(kind->class != STORE_GAUGE));
	set_number(j, "period", period_of(profile->f));
	set_number(j, "cpus", profile->f->cpus);
	set_number(j, "from_ns", (uint64_t)profile->f->from_ns);
	set_number(j, "to_ns", (uint64_t)profile->f->to_ns);
	set_number(j, "recorded_ns", fold_recorded_ns(profile->f));
	set_number(j, "frames", p->n_frames);
	set_number(j, "nodes", p->t->n_nodes);
	if (profile->diff)
		set_number(j, "slots", 0);
	else
		slots_pack(j, &profile->sides[0]);
	json_object_set_new(j, "sides", sides_pack(p, profile, owners));
	json_object_set_new(j, "owners", owners);
	if (profile->diff)
		json_object_set_new(j, "diff", diff_pack(profile->diff, string_index, p));
	free(p->order);
	free(p->packed);
	p->order = p->packed = NULL;
	p->n_frames = 0;
	return j;
}

/* u32 length, header. The strings are complete when all profiles are packed. */
static int head_make(struct packer *p, const struct flame_pack_head *head, json_t *profiles,
		     struct strbuf *raw)
{
	json_t *j = json_object();
	cleanup_free char *text = NULL;
	size_t len;

	set_number(j, "v", 2);
	json_object_set_new(j, "group", json_text(head->group));
	json_object_set_new(j, "source_url", json_text(head->source_url));
	json_object_set_new(j, "profiles", profiles);
	json_object_set(j, "strings", p->strings);
	text = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(8));
	json_decref(j);
	len = text ? strlen(text) : 0;
	if (!text || len > UINT32_MAX)
		return -ENOMEM;
	for (int i = 0; i < 4; i++)
		strbuf_addch(raw, (char)(len >> 8 * i & 0xff));
	strbuf_add(raw, text, len);
	return 0;
}

/* `to` has room for four characters per started group of three bytes. */
static void base64_write(char *to, const uint8_t *data, size_t len)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t v = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
			     (left > 2 ? data[i + 2] : 0);

		*to++ = digit[v >> 18];
		*to++ = digit[v >> 12 & 63];
		*to++ = left > 1 ? digit[v >> 6 & 63] : '=';
		*to++ = left > 2 ? digit[v & 63] : '=';
	}
}

static void base64_add(struct strbuf *out, const uint8_t *data, size_t len)
{
	size_t size = (len + 2) / 3 * 4;
	cleanup_free char *text = mem_alloc(size + 1);

	base64_write(text, data, len);
	strbuf_add(out, text, size);
}

static void deflate_part(void *part)
{
	zstream_deflate(part);
}

/* The columns are compressed while the header is made. */
static int deflate_base64(struct packer *p, const struct flame_pack_head *head, json_t *profiles,
			  struct strbuf *out)
{
	cleanup_strbuf struct strbuf raw = STRBUF_INIT;
	cleanup_free uint8_t *packed = NULL;
	struct zstream_part parts[] = {
		{.like = ZSTREAM_TEXT},
		{.data = p->columns.buf,
		 .len = p->columns.len,
		 .like = ZSTREAM_COLUMNS,
		 .last = true},
	};
	struct worker other;
	size_t len;
	int ret, joined;

	worker_start(&other, deflate_part, &parts[1]);
	ret = head_make(p, head, profiles, &raw);
	parts[0].data = strbuf_str(&raw);
	parts[0].len = raw.len;
	zstream_deflate(&parts[0]);
	worker_join(&other);
	joined = zstream_join(parts, 2, &packed, &len);
	ret = ret ? ret : joined;
	if (!ret)
		base64_add(out, packed, len);
	return ret;
}

static void packer_release(struct packer *p)
{
	struct text *t, *tmp;

	HASH_ITER (hh, p->texts, t, tmp) {
		HASH_DEL(p->texts, t);
		free(t);
	}
	json_decref(p->strings);
	strbuf_release(&p->columns);
}

int flame_pack(const struct flame_pack_head *head, const struct flame_pack_profile *profiles,
	       size_t n, struct strbuf *out)
{
	struct packer p = {.strings = json_array()};
	json_t *packed = json_array();
	int ret;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(packed, profile_pack(&p, &profiles[i]));
	ret = deflate_base64(&p, head, packed, out);
	packer_release(&p);
	return ret;
}
