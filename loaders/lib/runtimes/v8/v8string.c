/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/v8/v8string.h"

#include "loaders/lib/runtimes/utf8.h"
#include "schema/base/strbuf.h"

#define DEPTH_MAX 16u
#define PARTS_MAX 64u /* of one name */

/* A string's type, its lowest bits */
#define STRING_REPRESENTATION 7
#define STRING_ONE_BYTE       8
#define STRING_UNCACHED       16 /* of an external one: where its characters are is not kept */
enum representation { SEQUENTIAL, CONS, EXTERNAL, SLICED, THIN = 5 };

bool v8_text_find(struct v8heap *h, uint64_t string, struct v8_text *t)
{
	uint64_t skip = 0, tagged = 0;
	uint32_t length = 0;
	int64_t n = 0;

	for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
		int32_t type = v8_type(h, string);

		if (type < 0 || type >= v8_n(h, V8_TYPE_FIRST_NONSTRING) ||
		    !v8_half(h, string, v8_n(h, V8_STRING_LENGTH), &length))
			return false;
		if (!depth)
			t->length = length;
		t->wide = !(type & STRING_ONE_BYTE);
		switch (type & STRING_REPRESENTATION) {
		case SEQUENTIAL:
			t->at = string - 1 + (uint64_t)v8_n(h, V8_STRING_CHARS) +
				skip * (t->wide + 1u);
			return skip + t->length <= length;
		case EXTERNAL:
			if (type & STRING_UNCACHED ||
			    !v8_word(h, string, v8_n(h, V8_EXTERNAL_DATA), &t->at))
				return false;
			t->at += skip * (t->wide + 1u);
			return skip + t->length <= length;
		case CONS: /* one that was made flat: its second part is empty */
			if (!v8_word(h, string, v8_n(h, V8_CONS_SECOND), &tagged) ||
			    !v8_is_object(tagged) ||
			    !v8_half(h, tagged, v8_n(h, V8_STRING_LENGTH), &length) || length ||
			    !v8_word(h, string, v8_n(h, V8_CONS_FIRST), &string))
				return false;
			break;
		case THIN:
			if (!v8_word(h, string, v8_n(h, V8_THIN_ACTUAL), &string))
				return false;
			break;
		case SLICED:
			if (!v8_word(h, string, v8_n(h, V8_SLICED_OFFSET), &tagged) ||
			    !v8_small(tagged, &n) || n < 0 ||
			    !v8_word(h, string, v8_n(h, V8_SLICED_PARENT), &string))
				return false;
			skip += (uint64_t)n;
			break;
		default:
			return false;
		}
	}
	return false;
}

/* Of at most `left` characters; false: it cannot be read. */
static bool text_add(const struct v8heap *h, const struct v8_text *t, size_t left,
		     struct strbuf *to)
{
	uint8_t raw[2 * (SCRIPT_TEXT_MAX + 1)];
	size_t n = t->length < left ? t->length : left;

	if (n && !h->m->read(h->m->ctx, t->at, raw, n * (t->wide + 1u)))
		return false;
	for (size_t i = 0; i < n; i++) {
		uint32_t c = v8_char_at(raw, i, t->wide),
			 low = i + 1 < n ? v8_char_at(raw, i + 1, t->wide) : 0;

		if (c >= 0xd800 && c < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10 | (low - 0xdc00));
			i++;
		}
		utf8_add(to, c);
	}
	return true;
}

char *v8_string_read(struct v8heap *h, uint64_t string)
{
	uint64_t waiting[DEPTH_MAX] = {string};
	struct strbuf text = STRBUF_INIT;
	size_t n = 1, left = SCRIPT_TEXT_MAX;
	uint32_t length = 0;
	bool good = true;

	if (v8_type(h, string) < 0 || v8_type(h, string) >= v8_n(h, V8_TYPE_FIRST_NONSTRING) ||
	    !v8_half(h, string, v8_n(h, V8_STRING_LENGTH), &length))
		return NULL;
	for (unsigned parts = 0; n && left && good && parts < PARTS_MAX; parts++) {
		uint64_t s = waiting[--n], first = 0, second = 0;
		struct v8_text t = {0};

		if (v8_text_find(h, s, &t)) {
			good = text_add(h, &t, left, &text);
			left -= t.length < left ? t.length : left;
		} else {
			int32_t type = v8_type(h, s);

			good = type >= 0 && type < v8_n(h, V8_TYPE_FIRST_NONSTRING) &&
			       (type & STRING_REPRESENTATION) == CONS && n + 2 <= DEPTH_MAX &&
			       v8_word(h, s, v8_n(h, V8_CONS_FIRST), &first) &&
			       v8_word(h, s, v8_n(h, V8_CONS_SECOND), &second);
			if (good) {
				waiting[n++] = second;
				waiting[n++] = first;
			}
		}
	}
	if (!good || (n && left)) {
		strbuf_release(&text);
		return NULL;
	}
	if (length > SCRIPT_TEXT_MAX)
		strbuf_addstr(&text, "...");
	return strbuf_take(&text);
}
