/* SPDX-License-Identifier: Apache-2.0 */
#include "export/push/reply.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "schema/base/proto.h"

/* --- listening --- */

/* The value of a header line, if it has this name. */
static const char *value_of(const char *line, size_t len, const char *name, size_t *value_len)
{
	size_t n = strlen(name);

	if (len < n || strncasecmp(line, name, n))
		return NULL;
	while (n < len && (line[n] == ' ' || line[n] == '\t'))
		n++;
	*value_len = len - n;
	return line + n;
}

/* Seconds. A date, which is the other form, is as if nothing were asked. */
static uint32_t seconds(const char *s, size_t len)
{
	uint32_t v = 0;

	for (; len && *s >= '0' && *s <= '9' && v < REPLY_RETRY_MOST_S; s++, len--)
		v = v * 10 + (uint32_t)(*s - '0');
	return v < REPLY_RETRY_MOST_S ? v : REPLY_RETRY_MOST_S;
}

bool reply_head(struct reply *r, const char *line, size_t len)
{
	static const char protobuf[] = "application/x-protobuf";
	const char *value;
	size_t n;

	r->heads += len;
	if ((value = value_of(line, len, "Content-Type:", &n)))
		r->protobuf = n >= sizeof(protobuf) - 1 &&
			      !strncasecmp(value, protobuf, sizeof(protobuf) - 1);
	if ((value = value_of(line, len, "Retry-After:", &n)))
		r->retry_s = seconds(value, n);
	r->endless |= r->heads > REPLY_HEADS_MOST;
	return !r->endless;
}

bool reply_body(struct reply *r, const char *data, size_t len)
{
	size_t room = REPLY_TEXT_MOST - r->len, take = len < room ? len : room;

	memcpy(r->text + r->len, data, take);
	r->len += take;
	r->text[r->len] = '\0';
	r->all += len;
	r->endless |= r->all > REPLY_BODY_MOST;
	return !r->endless;
}

/* --- what it means --- */

/* By Connect's error codes; errors of gateways are never final. */
static bool is_final(const struct reply *r, const struct target *t, long status)
{
	if (t->type == TARGET_OTLP)
		return status == 400 && r->protobuf;
	return t->type == TARGET_PYROSCOPE && status == 400 &&
	       (strstr(r->text, "\"invalid_argument\"") || strstr(r->text, "\"out_of_range\""));
}

/* Export...ServiceResponse: partial_success (1) has the number of rejected items (1). false: not
 * such a message. */
static bool otlp_taken(const struct reply *r, uint64_t *rejected)
{
	struct cursor c = cursor_init(r->text, r->len);
	struct proto_field partial, f;
	uint64_t n = 0;
	bool whole = r->all <= REPLY_TEXT_MOST, bad = false;

	while (whole && proto_next(&c, &partial)) {
		struct cursor in = partial.type == 2 ? cursor_init(partial.data, partial.len) :
						       cursor_init("", 0);

		while (partial.number == 1 && proto_next(&in, &f))
			if (f.number == 1 && f.type == 0)
				n = f.value;
		bad |= partial.number == 1 && in.bad;
	}
	if (r->all && (!r->protobuf || c.bad || bad || !whole))
		return false;
	*rejected = n;
	return true;
}

/* ClickHouse's error codes; the text that comes with them is not shown. */
static const char *clickhouse_means(unsigned code)
{
	switch (code) {
	case 60:
		return "it has no such table: sonde export clickhouse --schema prints them";
	case 81:
		return "it has no such database: sonde export clickhouse --schema makes it";
	case 16:
	case 117:
		return "its tables have other columns: sonde export clickhouse --schema prints those of this version";
	case 192:
	case 193:
	case 194:
	case 516:
		return "unknown user or wrong password";
	case 164:
	case 497:
		return "the user may not write there";
	default:
		return NULL;
	}
}

static const char *status_means(long status)
{
	if (status >= 300 && status < 400)
		return "a redirect, which is not followed: url must name the receiver itself";
	switch (status) {
	case 200:
		return "unexpected text in the answer";
	case 401:
	case 403:
	case 407:
		return "check user, password-file or token-file";
	case 404:
	case 405:
		return "no such receiver at that address: check type, url, path";
	case 413:
		return "it, or a proxy before it, accepts no bodies of this size";
	default:
		return NULL;
	}
}

int reply_judge(const struct reply *r, const struct target *t, long status, uint64_t *rejected,
		struct err *e)
{
	const char *means = status_means(status);
	unsigned code;

	*rejected = 0;
	if (r->endless)
		return err_set(e, -EAGAIN, EXIT_RUNTIME,
			       "%s: %s answered %ld, with a longer text than sonde-push reads",
			       t->name, t->url, status);
	if (status == 200 && (t->type == TARGET_OTLP ? otlp_taken(r, rejected) : !r->all))
		return 0;
	if (is_final(r, t, status))
		return err_set(e, -EBADMSG, EXIT_RUNTIME,
			       "%s: %s refused it for good: it answered %ld", t->name, t->url,
			       status);
	if (t->type == TARGET_CLICKHOUSE && sscanf(r->text, "Code: %9u.", &code) == 1) {
		means = clickhouse_means(code);
		return err_set(e, -EAGAIN, EXIT_RUNTIME,
			       "%s: %s answered %ld, ClickHouse's code %u%s%s", t->name, t->url,
			       status, code, means ? ": " : "", means ? means : "");
	}
	return err_set(e, -EAGAIN, EXIT_RUNTIME, "%s: %s answered %ld%s%s", t->name, t->url, status,
		       means ? ": " : "", means ? means : "");
}
