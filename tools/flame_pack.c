/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/flame_pack.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/proto.h"

#define uthash_fatal(msg) abort()
#include <uthash.h>

struct text {
	const char *str; /* borrowed from the tree */
	uint32_t index;
	UT_hash_handle hh;
};

struct packer {
	const struct flame_tree *t;
	struct strbuf columns;
	struct text *texts;
	json_t *strings;
	uint32_t n_strings;
	uint32_t *order;    /* packed frame -> tree frame */
	uint32_t *packed;   /* tree frame -> packed frame + 1, 0: not used */
	uint32_t n_frames;
};

static uint64_t zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static uint32_t string_index(struct packer *p, const char *str)
{
	cleanup_strbuf struct strbuf safe = STRBUF_INIT;
	struct text *t;

	HASH_FIND_STR(p->texts, str, t);
	if (t)
		return t->index;
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

		proto_varint(&p->columns, (uint64_t)f->origin | (f->named ? 8 : 0) | (f->inlined ? 16 : 0));
	}
}

static void nodes_pack(struct packer *p, uint64_t period_ns)
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
	for (size_t i = 0; i < t->n_nodes; i++)
		proto_varint(&p->columns, t->nodes[i].self_samples);
	for (size_t i = 0; i < t->n_nodes; i++)
		proto_varint(&p->columns,
			     zigzag((int64_t)(t->nodes[i].self_ns - t->nodes[i].self_samples * period_ns)));
}

static char *header_text(struct packer *p, const struct flame_pack_head *head)
{
	json_t *j = json_object();
	char *text;

	json_object_set_new(j, "v", json_integer(1));
	json_object_set_new(j, "frames", json_integer(p->n_frames));
	json_object_set_new(j, "nodes", json_integer((json_int_t)p->t->n_nodes));
	json_object_set_new(j, "from_ns", json_integer(head->from_ns));
	json_object_set_new(j, "to_ns", json_integer(head->to_ns));
	json_object_set_new(j, "period_ns", json_integer((json_int_t)head->period_ns));
	json_object_set(j, "strings", p->strings);
	text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	return text;
}

static void base64_add(struct strbuf *out, const uint8_t *data, size_t len)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t v = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
			     (left > 2 ? data[i + 2] : 0);
		char four[4] = {digit[v >> 18], digit[v >> 12 & 63], left > 1 ? digit[v >> 6 & 63] : '=',
				left > 2 ? digit[v & 63] : '='};

		strbuf_add(out, four, sizeof(four));
	}
}

static int deflate_base64(const struct strbuf *raw, struct strbuf *out)
{
	uLongf len = compressBound(raw->len);
	cleanup_free uint8_t *packed = mem_alloc(len);

	if (compress2(packed, &len, (const Bytef *)raw->buf, raw->len, 6) != Z_OK)
		return -ENOMEM;
	base64_add(out, packed, len);
	return 0;
}

static void packer_release(struct packer *p)
{
	struct text *t, *tmp;

	HASH_ITER(hh, p->texts, t, tmp) {
		HASH_DEL(p->texts, t);
		free(t);
	}
	json_decref(p->strings);
	strbuf_release(&p->columns);
	free(p->order);
	free(p->packed);
}

int flame_pack(const struct flame_tree *t, const struct flame_pack_head *head, struct strbuf *out)
{
	struct packer p = {.t = t, .strings = json_array()};
	cleanup_strbuf struct strbuf raw = STRBUF_INIT;
	cleanup_free char *text = NULL;
	size_t len;
	int ret = -ENOMEM;

	frames_number(&p);
	frames_pack(&p);
	nodes_pack(&p, head->period_ns);
	text = header_text(&p, head);
	len = text ? strlen(text) : 0;
	if (text && len <= UINT32_MAX) {
		for (int i = 0; i < 4; i++)
			strbuf_addch(&raw, (char)(len >> 8 * i & 0xff));
		strbuf_add(&raw, text, len);
		strbuf_add(&raw, p.columns.buf, p.columns.len);
		ret = deflate_base64(&raw, out);
	}
	packer_release(&p);
	return ret;
}
