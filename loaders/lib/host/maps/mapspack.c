/* SPDX-License-Identifier: Apache-2.0 */
/* One table describes the layout of each type. */
#include "loaders/lib/host/maps/mapspack.h"

#include <errno.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/strbuf.h"

#define STRING_MAX 16000

static const struct shape {
	uint16_t size; /* of the fixed part with its head; 0: unknown type */
	uint16_t strings;
	uint16_t len_at; /* offset of the string lengths (u32 each) */
} shapes[] = {
	[MP_HELLO] = {sizeof(struct mp_hello), 0, 0},
	[MP_SEEDED] = {sizeof(struct mp_head), 0, 0},
	[MP_PROCESS] = {sizeof(struct mp_process), 4, offsetof(struct mp_process, len)},
	[MP_EXIT] = {sizeof(struct mp_exit), 0, 0},
	[MP_IMAGE] = {sizeof(struct mp_image), 1, offsetof(struct mp_image, len)},
	[MP_INDEX] = {sizeof(struct mp_index), 2, offsetof(struct mp_index, len)},
	[MP_MAP] = {sizeof(struct mp_map), 0, 0},
	[MP_WATERMARK] = {sizeof(struct mp_watermark), 0, 0},
	[MP_LOST] = {sizeof(struct mp_lost), 0, 0},
	[MP_COST] = {sizeof(struct mp_cost), 0, 0},
	[MP_TABLES] = {sizeof(struct mp_tables), 0, 0},
	[MP_USED] = {sizeof(struct mp_used), 0, 0},
	[MP_CONTAINER] = {sizeof(struct mp_container), 7, offsetof(struct mp_container, len)},
	[MP_ARGS] = {sizeof(struct mp_args), 1, offsetof(struct mp_args, len)},
	[MP_WANT_ARGS] = {sizeof(struct mp_want_args), 0, 0},
	[MP_WANT_NAMES] = {sizeof(struct mp_want_names), 0, 0},
	[MP_WANT_INDEX] = {sizeof(struct mp_want), 0, 0},
	[MP_HURRY] = {sizeof(struct mp_head), 0, 0},
	[MP_BOOKS] = {sizeof(struct mp_head), 0, 0},
};

static const struct shape *shape_of(uint32_t type)
{
	return type < ARRAY_SIZE(shapes) && shapes[type].size ? &shapes[type] : NULL;
}

void mapspack_add(struct strbuf *out, uint32_t type, const void *fixed, const char *const *str)
{
	const struct shape *sh = shape_of(type);
	size_t at = out->len;
	struct mp_head head = {.type = type};
	uint32_t len[MAPSPACK_STRINGS] = {0};

	if (!sh)
		return;
	strbuf_add(out, fixed, sh->size);
	for (uint32_t i = 0; i < sh->strings; i++) {
		const char *s = str && str[i] ? str[i] : "";

		len[i] = (uint32_t)strnlen(s, STRING_MAX);
		strbuf_add(out, s, len[i]);
		strbuf_addch(out, 0);
	}
	while ((out->len - at) % 8)
		strbuf_addch(out, 0);
	head.size = (uint32_t)(out->len - at);
	memcpy(out->buf + at, &head, sizeof(head));
	memcpy(out->buf + at + sh->len_at, len, sh->strings * sizeof(len[0]));
}

/* Point at the strings behind the fixed part. */
static int read_strings(const struct shape *sh, const char *msg, uint32_t size,
			struct mapspack_msg *out)
{
	uint32_t len[MAPSPACK_STRINGS] = {0};
	size_t at = sh->size;

	memcpy(len, msg + sh->len_at, sh->strings * sizeof(len[0]));
	for (uint32_t i = 0; i < sh->strings; i++) {
		if (len[i] >= size - at || msg[at + len[i]] || memchr(msg + at, 0, len[i]))
			return -EBADMSG;
		out->str[i] = msg + at;
		at += (size_t)len[i] + 1;
		if (at > size)
			return -EBADMSG;
	}
	return 0;
}

int mapspack_next(const void *packet, size_t len, size_t *pos, struct mapspack_msg *out)
{
	const char *msg = (const char *)packet + *pos;
	struct mapspack_msg m = {0};
	const struct shape *sh;
	struct mp_head head;

	if (*pos >= len)
		return 0;
	if (len - *pos < sizeof(head))
		return -EBADMSG;
	memcpy(&head, msg, sizeof(head));
	sh = shape_of(head.type);
	if (!sh || head.size < sh->size || head.size % 8 || head.size > len - *pos)
		return -EBADMSG;
	m.type = head.type;
	memcpy(&m.m, msg, sh->size);
	if (read_strings(sh, msg, head.size, &m))
		return -EBADMSG;
	*pos += head.size;
	*out = m;
	return 1;
}
