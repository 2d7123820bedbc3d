/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/reply.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"
#include "serve/guard.h"

#define POLICY                                                                                                                 \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " \
	"form-action 'self'; frame-ancestors 'none'"
#define PACK_FROM    1400 /* bytes: anything shorter fits in one packet anyway */
#define COOKIE_DAYS  90
#define STREAM_PIECE 256

/* clang-format off */
static const char *const HEADS[][2] = {
	{"Content-Security-Policy", POLICY}, {"X-Content-Type-Options", "nosniff"}, {"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"}, {"Cross-Origin-Resource-Policy", "same-origin"},
	{"X-Frame-Options", "DENY"}, {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
};
/* clang-format on */

static enum MHD_Result send_reply(struct MHD_Connection *c, unsigned status, struct MHD_Response *r,
				  const char *type, const char *cache)
{
	enum MHD_Result rc;

	if (!r)
		return MHD_NO;
	for (size_t i = 0; i < ARRAY_SIZE(HEADS); i++)
		MHD_add_response_header(r, HEADS[i][0], HEADS[i][1]);
	MHD_add_response_header(r, "Cache-Control", cache);
	if (type)
		MHD_add_response_header(r, "Content-Type", type);
	rc = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return rc;
}

/* `gzip` as an element of Accept-Encoding, not refused by q=0. */
static bool takes_gzip(struct MHD_Connection *c)
{
	const char *at = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Accept-Encoding");

	for (; at && *at; at += *at == ',') {
		size_t len = strcspn(at, ",");
		size_t skip = strspn(at, " \t");

		if (len >= skip + 4 && !strncasecmp(at + skip, "gzip", 4) &&
		    strchr(" \t;,", at[skip + 4]))
			return !memmem(at, len, "q=0", 3) || memmem(at, len, "q=0.", 4);
		at += len;
	}
	return false;
}

static json_t *text_json(const char *text)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;

	if (!*text)
		return json_null();
	strbuf_addutf8(&s, text, strlen(text));
	return json_string(strbuf_str(&s));
}

enum MHD_Result reply_error(struct MHD_Connection *c, unsigned status, const struct err *e,
			    unsigned retry_s)
{
	json_t *j = json_pack("{s:o, s:o, s:i}", "error", text_json(e->what), "fix",
			      text_json(e->fix), "exit", e->exit);
	char *text = json_dumps(j, JSON_COMPACT);
	struct MHD_Response *r =
		text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) :
		       NULL;
	char seconds[16];

	json_decref(j);
	if (r && retry_s) {
		snprintf(seconds, sizeof(seconds), "%u", retry_s);
		MHD_add_response_header(r, "Retry-After", seconds);
	}
	return send_reply(c, status, r, "application/json", "no-store");
}

enum MHD_Result reply_method(struct MHD_Connection *c, bool post)
{
	static const char get_text[] =
		"{\"error\":\"only GET and HEAD are allowed\",\"fix\":null,\"exit\":2}";
	static const char post_text[] =
		"{\"error\":\"only POST is allowed\",\"fix\":null,\"exit\":2}";
	const char *text = post ? post_text : get_text;
	struct MHD_Response *r = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);

	if (r)
		MHD_add_response_header(r, "Allow", post ? "POST" : "GET, HEAD");
	return send_reply(c, MHD_HTTP_METHOD_NOT_ALLOWED, r, "application/json", "no-store");
}

enum MHD_Result reply_asset(struct MHD_Connection *c, const struct asset *a)
{
	const char *known = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "If-None-Match");
	bool same = known && !strcmp(known, a->tag), packed = takes_gzip(c);
	struct MHD_Response *r = MHD_create_response_from_buffer(
		same   ? 0 :
		packed ? a->packed_len :
			 a->plain_len,
		(void *)(uintptr_t)(packed ? a->packed : a->plain), MHD_RESPMEM_PERSISTENT);

	if (r) {
		MHD_add_response_header(r, "ETag", a->tag);
		MHD_add_response_header(r, "Vary", "Accept-Encoding");
		if (packed && !same)
			MHD_add_response_header(r, "Content-Encoding", "gzip");
	}
	return send_reply(c, same ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, r, a->type, "no-cache");
}

/* A memory file with the same content, gzipped; -1 if that fails. */
static int pack(int fd, uint64_t *bytes)
{
	cleanup_fd int out = memfd_create("packed", MFD_CLOEXEC);
	unsigned char in_buf[1 << 14], out_buf[1 << 14];
	z_stream z = {0};
	uint64_t at = 0, all = 0;
	int rc = out < 0 || deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
					 Z_DEFAULT_STRATEGY) != Z_OK ?
			 Z_ERRNO :
			 Z_OK;

	while (rc == Z_OK) {
		ssize_t n = pread(fd, in_buf, sizeof(in_buf), (off_t)at);

		if (n < 0)
			break;
		at += (uint64_t)n;
		z.next_in = in_buf;
		z.avail_in = (uInt)n;
		do {
			z.next_out = out_buf;
			z.avail_out = sizeof(out_buf);
			rc = deflate(&z, n ? Z_NO_FLUSH : Z_FINISH);
			all += sizeof(out_buf) - z.avail_out;
			if (write(out, out_buf, sizeof(out_buf) - z.avail_out) !=
			    (ssize_t)(sizeof(out_buf) - z.avail_out))
				rc = Z_ERRNO;
		} while (rc == Z_OK && !z.avail_out);
	}
	if (out >= 0)
		deflateEnd(&z);
	if (rc != Z_STREAM_END)
		return -1;
	*bytes = all;
	return take_fd(&out);
}

enum MHD_Result reply_file(struct MHD_Connection *c, const char *type, int fd, uint64_t bytes,
			   const char *download)
{
	int packed = bytes >= PACK_FROM && takes_gzip(c) ? pack(fd, &bytes) : -1;
	struct MHD_Response *r;
	char name[128];

	if (packed >= 0) {
		close(fd);
		fd = packed;
	}
	r = MHD_create_response_from_fd64(bytes, fd);
	if (!r) {
		close(fd);
		return MHD_NO;
	}
	if (packed >= 0)
		MHD_add_response_header(r, "Content-Encoding", "gzip");
	if (download) {
		snprintf(name, sizeof(name), "attachment; filename=\"%s\"", download);
		MHD_add_response_header(r, "Content-Disposition", name);
	}
	MHD_add_response_header(r, "Vary", "Accept-Encoding");
	return send_reply(c, MHD_HTTP_OK, r, type, "no-store");
}

enum MHD_Result reply_cookie(struct MHD_Connection *c, const char *token)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	char cookie[320];

	if (r) {
		snprintf(cookie, sizeof(cookie),
			 GUARD_COOKIE "=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax", token,
			 COOKIE_DAYS * 86400);
		MHD_add_response_header(r, "Set-Cookie", cookie);
		MHD_add_response_header(r, "Location", "/");
	}
	return send_reply(c, MHD_HTTP_SEE_OTHER, r, NULL, "no-store");
}

enum MHD_Result reply_login(struct MHD_Connection *c, int wrong)
{
	static const char page[2][640] = {
#define LOGIN(word)                                                                                                                                                 \
	"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">"                                          \
	"<link rel=\"icon\" href=\"data:,\"><title>sonde</title><link rel=\"stylesheet\" href=\"/app.css\"><main class=\"login\"><h1>sonde</h1><form action=\"/\">" \
	"<label>Token <input name=\"token\" type=\"password\" autocomplete=\"current-password\" autofocus required></label> <button>Open</button></form>"           \
	"<p>" word "</p></main></html>"
		LOGIN("The token is in the file given to <code>sonde serve --token-file</code>."),
		LOGIN("This is not the token. It is in the file given to <code>sonde serve --token-file</code>."),
	};
	struct MHD_Response *r = MHD_create_response_from_buffer(
		strlen(page[wrong]), (void *)(uintptr_t)page[wrong], MHD_RESPMEM_PERSISTENT);

	return send_reply(c, MHD_HTTP_UNAUTHORIZED, r, "text/html; charset=utf-8", "no-store");
}

enum MHD_Result reply_text(struct MHD_Connection *c, char *text)
{
	return send_reply(
		c, MHD_HTTP_OK,
		text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) :
		       NULL,
		"application/json", "no-store");
}

enum MHD_Result reply_message(struct MHD_Connection *c, unsigned status, char *text,
			      const char *session)
{
	struct MHD_Response *r =
		text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) :
		       MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);

	if (r && session)
		MHD_add_response_header(r, "Mcp-Session-Id", session);
	return send_reply(c, status, r, text ? "application/json" : NULL, "no-store");
}

enum MHD_Result reply_stream(struct MHD_Connection *c, const char *type,
			     MHD_ContentReaderCallback read, MHD_ContentReaderFreeCallback done,
			     void *cls)
{
	struct MHD_Response *r =
		MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_PIECE, read, cls, done);

	if (!r)
		done(cls);
	return send_reply(c, MHD_HTTP_OK, r, type, "no-store");
}
