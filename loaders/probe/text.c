/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/text.h"

#include <string.h>

#include "loaders/lib/host/proc/syscalls.h"
#include "loaders/lib/host/secrets/secrets.h"
#include "schema/base/strbuf.h"

#define ERRNO_MOST 4095

static void masked(const char *text, size_t len, struct strbuf *out)
{
	struct strbuf shown cleanup_strbuf = STRBUF_INIT;

	secrets_mask_text(text, len, &shown);
	strbuf_addutf8(out, strbuf_str(&shown), shown.len);
}

static void json_string(const char *text, size_t len, struct strbuf *out)
{
	struct strbuf shown cleanup_strbuf = STRBUF_INIT;

	masked(text, len, &shown);
	strbuf_addch(out, '"');
	for (size_t i = 0; i < shown.len; i++) {
		unsigned char c = (unsigned char)shown.buf[i];

		if (c == '"' || c == '\\')
			strbuf_addch(out, '\\');
		if (c < 0x20)
			strbuf_addf(out, "\\u%04x", c);
		else
			strbuf_addch(out, (char)c);
	}
	strbuf_addch(out, '"');
}

static bool is_call(const struct probespec *s, uint32_t arg)
{
	return s->at.kind == PROBESPEC_SYSCALL && *s->at.target == '*' && arg < s->n_args &&
	       !strcmp(s->args[arg].field, "call");
}

static void number(const struct probespec *s, uint32_t arg, int64_t v, bool json,
		   struct strbuf *out)
{
	enum probespec_type t = arg < s->n_args                     ? s->args[arg].type :
				arg == PROBESPEC_RET && s->ret_type ? s->ret_type :
								      PROBESPEC_INT64;
	const char *name = is_call(s, arg) ? syscall_name((int)v) : NULL;

	if (name)
		strbuf_addf(out, json ? "\"%s\"" : "%s", name);
	else if (t == PROBESPEC_BOOL)
		strbuf_addstr(out, v ? "true" : "false");
	else if (t == PROBESPEC_UINT64)
		strbuf_addf(out, "%llu", (unsigned long long)v);
	else
		strbuf_addf(out, "%lld", (long long)v);
}

static const char *error_of(int64_t ret)
{
	return ret < 0 && ret >= -ERRNO_MOST ? strerrorname_np((int)-ret) : NULL;
}

static void one_arg(const struct probespec *s, uint32_t i, const struct probe_event *ev,
		    struct strbuf *out)
{
	uint64_t at = (uint64_t)ev->value[i];

	if (ev->missing >> i & 1)
		strbuf_addstr(out, "null");
	else if (s->args[i].type != PROBESPEC_STR)
		number(s, i, ev->value[i], true, out);
	else if (at < ev->n_text)
		json_string(ev->text + at, strnlen(ev->text + at, ev->n_text - at), out);
	else
		strbuf_addstr(out, "null");
}

/* Its `ret` is an argument. */
static bool returns_text(const struct probespec *s)
{
	for (uint32_t i = 0; i < s->n_args; i++)
		if (s->args[i].returned)
			return true;
	return false;
}

void text_args(const struct probespec *s, const struct probe_event *ev, struct strbuf *out)
{
	const char *error = probespec_has_error(s) ? error_of(ev->ret) : NULL;
	const bool shown = (ev->flags & PROBE_F_RETURNS) && !returns_text(s);

	strbuf_addch(out, '{');
	for (uint32_t i = 0; i < s->n_args; i++) {
		strbuf_addf(out, "%s\"%s\":", i ? "," : "", s->args[i].name);
		one_arg(s, i, ev, out);
	}
	if (shown) {
		strbuf_addf(out, "%s\"ret\":", s->n_args ? "," : "");
		number(s, PROBESPEC_RET, ev->ret, true, out);
		if (error)
			strbuf_addf(out, ",\"error\":\"%s\"", error);
	}
	strbuf_addch(out, '}');
}

void text_key(const struct probespec *s, const struct probe_key *key, struct strbuf *out)
{
	for (uint32_t i = 0; i < s->n_by; i++) {
		uint32_t arg = s->by[i].arg;
		const bool result = arg == PROBESPEC_RET && probespec_has_error(s);
		const char *error = result ? error_of(key->number[i]) : NULL;

		if (i)
			strbuf_addch(out, ' ');
		if (arg < s->n_args && s->args[arg].type == PROBESPEC_STR)
			masked(key->text, strnlen(key->text, sizeof(key->text)), out);
		else if (result && !key->number[i])
			strbuf_addstr(out, "ok");
		else if (error)
			strbuf_addstr(out, error);
		else
			number(s, arg, key->number[i], false, out);
	}
}

void text_shape(const struct probespec *s, struct strbuf *out)
{
	for (uint32_t i = 0; i < s->n_args; i++)
		strbuf_addf(out, "%s%s %s", i ? "," : "", s->args[i].name,
			    is_call(s, i) ? "str" : probespec_type_name(s->args[i].type));
	if (probespec_has_ret(s) && !returns_text(s))
		strbuf_addf(out, "%sret %s", s->n_args ? "," : "",
			    probespec_type_name(s->ret_type ? s->ret_type : PROBESPEC_INT64));
	if (probespec_has_ns(s))
		strbuf_addf(out, "%sns uint64", s->n_args || probespec_has_ret(s) ? "," : "");
}
