/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mysql: MySQL's and MariaDB's client/server protocol ("Client/Server Protocol" of MySQL's source
 * documentation; MariaDB's knowledge base).
 *
 *   packet     LEN:24 (little endian) SEQ:8 PAYLOAD; one of 0xffffff bytes goes on in the next
 *   compressed LEN:24 SEQ:8 PLAIN_LEN:24 DATA, zlib or zstd if PLAIN_LEN is not 0; within it
 *              packets, cut anywhere
 *   server     first: 10 VERSION\0 ... CAPABILITIES, or ff error. OK 00, ERR ff CODE:16 '#'
 *              SQLSTATE:5, EOF fe (5 bytes)
 *   client     CAPABILITIES:32 ...; TLS begins after it where it is of 32 bytes with bit 11, and
 *              the whole of it comes again inside, with the next SEQ
 *   commands   with SEQ 0: COMMAND:8 ...; answered by OK, ERR, a result set (COLUMNS, definitions,
 *              [EOF], rows, EOF or OK with header fe), fb: the client sends a file; STMT_CLOSE and
 *              STMT_SEND_LONG_DATA are not answered
 *   more       status flag 8 of OK and EOF: another result follows, which belongs to the same
 *              question
 *
 * An EOF has five bytes, an OK in its place seven or more: which of both a connection uses
 * shows where it comes, so that it need not be known. Statements are known by the number that the
 * answer to PREPARE gives. An error's status is its SQLSTATE, or its number. One that nothing asked
 * for ends the connection: an error of the CONNECTION.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "loaders/lib/protocols/idtable.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/sql.h"
#include "loaders/lib/protocols/table.h"
#include "loaders/lib/protocols/unpack.h"
#include "schema/base/array.h"
#include "schema/base/mem.h"

#define PACKET_MORE       0xffffffu
#define CAP_COMPRESS      0x20u
#define CAP_SSL           0x800u
#define CAP_DEPRECATE_EOF (1u << 24)
#define CAP_ZSTD          (1u << 26)
#define CAP_ATTRIBUTES    (1u << 27)
#define STATUS_MORE       8u
#define STATUS_CURSOR     0x40u
#define PROGRESS          0xffffu     /* MariaDB: an ERR that says how far a long statement is */
#define LAST_STATEMENT    0xffffffffu /* MariaDB: the one prepared last */
#define FRAME_HEAD        7
#define INNER_MAX         8192

enum command {
	COM_QUIT = 1,
	COM_INIT_DB = 2,
	COM_QUERY = 3,
	COM_FIELD_LIST = 4,
	COM_STATISTICS = 9,
	COM_PING = 14,
	COM_CHANGE_USER = 17,
	COM_BINLOG_DUMP = 18,
	COM_BINLOG_DUMP_GTID = 30,
	COM_PREPARE = 22,
	COM_EXECUTE = 23,
	COM_LONG_DATA = 24,
	COM_CLOSE = 25,
	COM_RESET = 26,
	COM_SET_OPTION = 27,
	COM_FETCH = 28,
	COM_RESET_CONNECTION = 31,
	COM_BULK_EXECUTE = 250,
	COM_CONNECT = 256 /* ours: the handshake */
};

enum expects {
	FIRST,
	DEFINITIONS,
	AFTER_DEFINITIONS,
	ROWS,
	PREPARE_PARAMS,
	PREPARE_PARAMS_EOF,
	PREPARE_COLUMNS,
	PREPARE_COLUMNS_EOF
};

struct inner { /* a side of the compressed stream, unpacked */
	uint8_t *buf;
	size_t len;
	uint64_t skip;
	struct unpack *unpack;  /* of the frame at hand; NULL: it is not compressed */
	uint32_t packed, plain; /* bytes of it that are to come, as they come and unpacked */
};

struct mysql {
	bool handshake; /* commands have not begun */
	bool greeted, sent_login;
	bool attributes, deprecate_eof, knows_eof;
	bool compressed, compress_later, zstd;
	bool file;    /* the client sends a file */
	bool data;    /* the client sends a parameter's data, part of the EXECUTE that follows */
	bool more[2]; /* a packet of 0xffffff went before */
	enum expects expects;
	uint32_t columns, params;
	uint32_t server_caps;
	struct idtable statements;
	struct inner inner[2];
	uint32_t last_statement;
};

static int64_t packet(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
		      bool last);

/* A length-encoded number; *value. Bytes, 0: not here. */
static size_t lenenc(const uint8_t *p, size_t n, uint64_t *value)
{
	if (!n)
		return 0;
	if (p[0] < 0xfb)
		return *value = p[0], 1;
	if (p[0] == 0xfc && n >= 3)
		return *value = le16(p + 1), 3;
	if (p[0] == 0xfd && n >= 4)
		return *value = le24(p + 1), 4;
	if (p[0] == 0xfe && n >= 9)
		return *value = le64(p + 1), 9;
	return 0;
}

/* ---- recognise ---- */

static bool is_greeting(const uint8_t *p, size_t n)
{
	uint32_t len = n >= 5 ? le24(p) : 0;
	size_t i = 5;

	if (n < 8 || p[3])
		return false;
	if (p[4] == 0xff) /* too many connections, host not allowed */
		return len + 4 == n && len > 5 && len < 512 && le16(p + 5) >= 1000 &&
		       le16(p + 5) < 5000 && (byte_is_letter(p[7]) || p[7] == '#');
	if (p[4] != 10 || len < 40 || len > 512 || !byte_is_digit(p[5]))
		return false;
	while (i < n && i < 80 && p[i] > ' ' && p[i] < 0x7f)
		i++;
	return (i == n && n < 80) || (i < n && i > 7 && !p[i] && memchr(p + 5, '.', i - 5));
}

static bool is_command(const uint8_t *p, size_t n)
{
	static const char *const verbs[] = {
		"select",   "insert", "update", "delete",  "begin",   "commit",   "set ",
		"show",     "start",  "call",   "replace", "create",  "drop",     "with",
		"rollback", "alter",  "use ",   "load",    "explain", "truncate", NULL};
	uint32_t len;

	if (n < 5 || p[3])
		return false;
	len = le24(p);
	if (!len || len > (1u << 24) - 1)
		return false;
	if (p[4] == COM_EXECUTE)
		return len >= 10 && n >= 14 && p[9] <= 7 && le32(p + 10) == 1;
	if (p[4] == COM_INIT_DB)
		return len > 1 && len <= 65 && n >= 6 && p[5] > ' ' && p[5] < 0x7f;
	if (p[4] == COM_LONG_DATA)
		return len >= 7 && n >= 9 && le32(p + 5) < 1 << 24;
	if (p[4] != COM_QUERY && p[4] != COM_PREPARE)
		return len ==
		       (p[4] == COM_PING || p[4] == COM_RESET_CONNECTION || p[4] == COM_STATISTICS ?
				1u :
			p[4] == COM_SET_OPTION                 ? 3u :
			p[4] == COM_CLOSE || p[4] == COM_RESET ? 5u :
			p[4] == COM_FETCH                      ? 9u :
								 0u);
	for (const char *const *v = verbs; *v; v++)
		if (n - 5 >= strlen(*v) && !strncasecmp((const char *)p + 5, *v, strlen(*v)))
			return true;
	return n > 7 && (p[5] == '/' || p[5] == '(') && p[6] >= ' ' && p[6] < 0x7f;
}

/* The offset of the first command that the server answers; n: not here yet; SIZE_MAX: these are no
 * commands. */
static size_t first_answered(const uint8_t *p, size_t n)
{
	size_t at = 0;

	while (at < n) {
		if (n - at < 5)
			return n;
		if (!is_command(p + at, n - at))
			return SIZE_MAX;
		if (p[at + 4] != COM_CLOSE && p[at + 4] != COM_LONG_DATA)
			return at;
		at += le24(p + at) + 4;
	}
	return n;
}

/* Can this be the first packet of the answer to `cmd`? */
static bool answers(uint8_t cmd, const uint8_t *p, size_t n)
{
	uint32_t len = le24(p);

	if (p[3] != 1 || !len)
		return false;
	if (p[4] == 0xff)
		return len >= 3 && (n < 7 || le16(p + 5) >= 1000);
	if (cmd == COM_QUERY || cmd == COM_PREPARE || cmd == COM_EXECUTE || cmd == COM_FETCH)
		return p[4] == 0 || len <= 9;
	if (cmd == COM_STATISTICS)
		return p[4] == 'U' && n >= 11 && !memcmp(p + 4, "Uptime:", 7);
	/* OK: 0 rows, insert id 0 */
	return (p[4] == 0 && len >= 7 && (n < 7 || (!p[5] && !p[6]))) || (p[4] == 0xfe && len == 5);
}

/* `seq`: 1, and 2 inside TLS, which began after the greeting. */
static bool is_login(const uint8_t *p, size_t n, uint8_t seq)
{
	static const uint8_t filler[19];

	return n >= 36 && p[3] == seq && le24(p) >= 32 && le24(p) < 4096 && le32(p + 4) & 0x200 &&
	       !memcmp(p + 13, filler, sizeof(filler));
}

static enum proto_guess mysql_recognise(const struct proto_first *f)
{
	size_t at;

	if (f->begun && is_login(f->client, f->n_client, 2))
		return PROTO_YES;
	if (f->begun && f->last && !f->n_server)
		return is_login(f->client, f->n_client, 1) ? PROTO_YES : PROTO_NO;
	if (f->begun) {
		if (!f->n_server)
			return f->n_client && !is_login(f->client, f->n_client, 1) ? PROTO_NO :
										     PROTO_MAYBE;
		if (f->n_server < 8)
			return f->n_server < 4 || (f->server[3] == 0 &&
						   (f->n_server < 5 || f->server[4] == 10 ||
						    f->server[4] == 0xff)) ?
				       PROTO_MAYBE :
				       PROTO_NO;
		if (f->server[4] == 0xff && !f->server[3] && le24(f->server) < 512 &&
		    le24(f->server) + 4 > f->n_server)
			return PROTO_MAYBE;
		return is_greeting(f->server, f->n_server) ? PROTO_YES : PROTO_NO;
	}
	if (!f->n_client)
		return f->n_server ? PROTO_NO : PROTO_MAYBE;
	at = first_answered(f->client, f->n_client);
	if (at == SIZE_MAX)
		return PROTO_NO;
	if (at == f->n_client)
		return PROTO_MAYBE;
	if (!f->n_server && f->last)
		return f->client[at + 4] == COM_QUERY || f->client[at + 4] == COM_PREPARE ?
			       PROTO_YES :
			       PROTO_NO;
	if (f->n_server < 5)
		return PROTO_MAYBE;
	return answers(f->client[at + 4], f->server, f->n_server) ? PROTO_YES : PROTO_NO;
}

/* ---- client ---- */

static uint32_t statement(struct proto_conn *c, const uint8_t *p, size_t n, bool cut)
{
	char sql[SQL_MAX];

	if (!sql_operation(p, n, cut, SQL_MYSQL, proto_payload(c), sql))
		return proto_name(c, "(empty)", 7);
	return proto_name(c, sql, sizeof(sql));
}

static void query(struct proto_conn *c, struct mysql *s, enum command cmd, const uint8_t *p,
		  size_t n, bool cut)
{
	size_t skip = s->attributes && cmd == COM_QUERY && n >= 2 ? 2 : 0;
	struct proto_pending *q;
	const uint8_t *trace;
	uint32_t op;
	size_t m;

	if (skip && p[0]) /* attributes with values precede the text */
		op = proto_name(c, "<query with attributes>", 23);
	else
		op = statement(c, p + skip, n - skip, cut);
	q = proto_ask(
		c, cmd == COM_PREPARE ? proto_namef(c, "PREPARE %s", proto_name_text(c, op)) : op,
		(uint64_t)cmd);
	q->tag = op;
	m = sql_trace(p, n, &trace);
	if (m)
		proto_trace(q, trace, m);
}

static void execute(struct proto_conn *c, struct mysql *s, enum command cmd, const uint8_t *p,
		    size_t n)
{
	uint32_t id = n >= 4 ? le32(p) : 0,
		 op = id == LAST_STATEMENT ? s->last_statement : idtable_get(&s->statements, id);

	if (id == LAST_STATEMENT && !op) { /* its PREPARE has no answer yet */
		const struct proto_pending *before = proto_newest(c);

		op = before && before->id == COM_PREPARE ? before->tag : 0;
	}
	proto_ask(c, op ? op : proto_namef(c, "<prepared %u>", id), (uint64_t)cmd);
}

static const char *command_name(uint8_t cmd)
{
	static const char *const names[] = {
		[2] = "INIT DB",          [4] = "FIELD LIST",      [5] = "CREATE DB",
		[6] = "DROP DB",          [7] = "REFRESH",         [8] = "SHUTDOWN",
		[9] = "STATISTICS",       [10] = "PROCESS INFO",   [12] = "PROCESS KILL",
		[13] = "DEBUG",           [14] = "PING",           [17] = "CHANGE USER",
		[18] = "BINLOG DUMP",     [21] = "REGISTER SLAVE", [26] = "RESET STATEMENT",
		[27] = "SET OPTION",      [28] = "FETCH",          [30] = "BINLOG DUMP GTID",
		[31] = "RESET CONNECTION"};

	return cmd < ARRAY_SIZE(names) ? names[cmd] : NULL;
}

static bool command(struct proto_conn *c, struct mysql *s, const uint8_t *p, size_t n, bool cut)
{
	const char *name;

	switch (p[0]) {
	case COM_QUERY:
	case COM_PREPARE:
		query(c, s, (enum command)p[0], p + 1, n - 1, cut);
		break;
	case COM_EXECUTE:
	case COM_BULK_EXECUTE:
		execute(c, s, (enum command)p[0], p + 1, n - 1);
		break;
	case COM_CLOSE:
		if (n >= 5)
			idtable_put(&s->statements, le32(p + 1), 0);
		proto_one_way(c, proto_name(c, "CLOSE", 5));
		break;
	case COM_LONG_DATA:
		s->data = true;
		break;
	case COM_QUIT:
		break;
	default:
		name = command_name(p[0]);
		if (!name)
			return false;
		proto_ask(c, proto_name(c, name, strlen(name)), p[0]);
	}
	return true;
}

/* True: TLS begins. */
static bool login(struct proto_conn *c, struct mysql *s, const uint8_t *p, uint32_t len)
{
	uint32_t caps = le32(p) & (s->server_caps ? s->server_caps | 0xf0000000u : UINT32_MAX);

	if (le32(p) & CAP_SSL && len == 32) {
		proto_upgrade(c);
		return true;
	}
	s->sent_login = true;
	s->attributes = caps & CAP_ATTRIBUTES;
	s->deprecate_eof = caps & CAP_DEPRECATE_EOF;
	s->knows_eof = true;
	s->compress_later = caps & (CAP_COMPRESS | CAP_ZSTD);
	s->zstd = !(caps & CAP_COMPRESS);
	proto_ask(c, proto_name(c, "CONNECT", 7), COM_CONNECT);
	return false;
}

static int64_t client(struct proto_conn *c, struct mysql *s, const uint8_t *p, size_t n, bool last)
{
	uint32_t len;
	size_t see;

	if (n < 4)
		return PROTO_MORE;
	len = le24(p);
	if (s->file) { /* data until an empty packet */
		s->file = len;
		return len + 4;
	}
	see = len < PROTO_LOOK ? len : PROTO_LOOK;
	if (n - 4 < see && !last)
		return PROTO_MORE;
	see = see < n - 4 ? see : n - 4;
	if (s->handshake && s->sent_login && !s->greeted && !p[3])
		s->handshake = false; /* the server's side was not captured */
	if (!s->more[PROTO_CLIENT])
		s->data = false;
	if (s->handshake) {
		s->greeted = s->greeted || (!s->sent_login && p[3] == 2); /* before TLS */
		if (!s->sent_login && see >= 4 && login(c, s, p + 4, len))
			return len + 4; /* the rest is TLS */
	} else if (s->more[PROTO_CLIENT]) {
		;
	} else if (p[3] || !see || !command(c, s, p + 4, see, see < len)) {
		if (!p[3] || !proto_newest(c)) /* with another number it is CHANGE USER's talk */
			return PROTO_LOST;
	}
	s->more[PROTO_CLIENT] = len == PACKET_MORE;
	if (s->data)
		proto_goes_on(c);
	return len + 4;
}

/* ---- server ---- */

static void over(struct proto_conn *c, struct mysql *s, struct proto_pending *q,
		 enum proto_result result, const char *status)
{
	s->expects = FIRST;
	proto_answer(c, q, result, status);
}

static void code_of(const uint8_t *p, size_t n, char status[8])
{
	memset(status, 0, 8);
	if (n >= 9 && p[3] == '#')
		memcpy(status, p + 4, 5);
	else if (n >= 3)
		snprintf(status, 8, "%u", le16(p + 1));
}

static void fail(struct proto_conn *c, struct mysql *s, struct proto_pending *q, const uint8_t *p,
		 size_t n)
{
	char status[8];

	code_of(p, n, status);
	over(c, s, q, PROTO_ERROR, status);
}

/* The status flags of an OK (header 00 or fe) or of an EOF. */
static unsigned flags_of(const uint8_t *p, size_t n, uint32_t len)
{
	uint64_t v;
	size_t at = 1, m;

	if (len == 5 && p[0] == 0xfe)
		return n >= 5 ? le16(p + 3) : 0;
	for (int i = 0; i < 2; i++) {
		m = lenenc(p + at, n > at ? n - at : 0, &v);
		if (!m)
			return 0;
		at += m;
	}
	return n >= at + 2 ? le16(p + at) : 0;
}

static void result_over(struct proto_conn *c, struct mysql *s, struct proto_pending *q,
			unsigned flags)
{
	s->expects = FIRST;
	if (!(flags & STATUS_MORE))
		over(c, s, q, PROTO_OK, "");
}

static void prepare_next(struct proto_conn *c, struct mysql *s, struct proto_pending *q)
{
	bool eof = s->knows_eof && !s->deprecate_eof;

	if (s->expects == PREPARE_PARAMS && !s->params)
		s->expects = s->columns ? PREPARE_COLUMNS : FIRST;
	else if (s->expects == PREPARE_PARAMS || s->expects == PREPARE_COLUMNS)
		return;
	if (s->expects == FIRST || (s->expects == PREPARE_COLUMNS_EOF && !eof) ||
	    (s->expects == PREPARE_PARAMS_EOF && !eof && !s->columns))
		over(c, s, q, PROTO_OK, "");
	else if (s->expects == PREPARE_PARAMS_EOF && !eof)
		s->expects = PREPARE_COLUMNS;
}

static void first_packet(struct proto_conn *c, struct mysql *s, struct proto_pending *q,
			 const uint8_t *p, size_t n, uint32_t len)
{
	uint64_t columns = 0;

	if (p[0] == 0xff) {
		fail(c, s, q, p, n);
	} else if (q->id == COM_PREPARE && p[0] == 0 && len >= 9) {
		if (n >= 9) {
			s->last_statement = q->tag;
			idtable_put(&s->statements, le32(p + 1), q->tag);
			s->columns = le16(p + 5);
			s->params = le16(p + 7);
		}
		s->expects = PREPARE_PARAMS;
		prepare_next(c, s, q);
	} else if (q->id == COM_STATISTICS) {
		over(c, s, q, PROTO_OK, "");
	} else if (q->id == COM_FIELD_LIST || q->id == COM_FETCH) {
		s->expects = p[0] == 0xfe && len < 9 ? FIRST : ROWS;
		if (s->expects == FIRST)
			over(c, s, q, PROTO_OK, "");
	} else if (q->id == COM_CHANGE_USER && (p[0] == 0xfe || p[0] == 1) && len > 1) {
		; /* asks for another proof */
	} else if (p[0] == 0 || (p[0] == 0xfe && len < 9)) {
		result_over(c, s, q, flags_of(p, n, len));
	} else if (p[0] == 0xfb) {
		s->file = true;
	} else if (lenenc(p, n, &columns) && columns && columns < 1 << 16) {
		s->columns = len == 2 && !p[1] ?
				     0 :
				     (uint32_t)columns; /* MariaDB: definitions are known already */
		s->expects = s->columns ? DEFINITIONS : AFTER_DEFINITIONS;
	}
}

static void later_packet(struct proto_conn *c, struct mysql *s, struct proto_pending *q,
			 const uint8_t *p, size_t n, uint32_t len)
{
	bool end = p[0] == 0xfe && len < PACKET_MORE &&
		   (len == 5 || s->expects != ROWS || len < 9 || s->deprecate_eof);

	switch (s->expects) {
	case DEFINITIONS:
		if (p[0] == 0xff)
			fail(c, s, q, p, n);
		else if (!--s->columns)
			s->expects = AFTER_DEFINITIONS;
		break;
	case AFTER_DEFINITIONS:
		s->expects = ROWS;
		if (p[0] == 0xfe && len == 5) {
			if (flags_of(p, n, len) & STATUS_CURSOR)
				result_over(c, s, q, flags_of(p, n, len));
			break;
		}
		/* fall through */
	case ROWS:
		if (p[0] == 0xff)
			fail(c, s, q, p, n);
		else if (end)
			result_over(c, s, q, flags_of(p, n, len));
		break;
	case PREPARE_PARAMS:
		if (s->params && --s->params)
			break;
		s->expects = PREPARE_PARAMS_EOF;
		prepare_next(c, s, q);
		break;
	case PREPARE_PARAMS_EOF:
		s->expects = s->columns ? PREPARE_COLUMNS : PREPARE_COLUMNS_EOF;
		if (!s->columns)
			over(c, s, q, PROTO_OK, "");
		break;
	case PREPARE_COLUMNS:
		if (s->columns && --s->columns)
			break;
		s->expects = PREPARE_COLUMNS_EOF;
		prepare_next(c, s, q);
		break;
	case PREPARE_COLUMNS_EOF:
		over(c, s, q, PROTO_OK, "");
		break;
	case FIRST:
		break;
	}
}

static void greeting(struct mysql *s, const uint8_t *p, size_t n)
{
	const uint8_t *end = memchr(p, 0, n);
	size_t at = end ? (size_t)(end - p) + 1 + 4 + 8 + 1 : n;

	s->greeted = true;
	if (at + 2 <= n)
		s->server_caps = le16(p + at);
	if (at + 7 <= n)
		s->server_caps |= (uint32_t)le16(p + at + 5) << 16;
}

static void handshake(struct proto_conn *c, struct mysql *s, const uint8_t *p, size_t n)
{
	struct proto_pending *q = proto_oldest(c);
	char status[8];

	if (!s->greeted && p[0] == 0xff) { /* too many connections, host not allowed */
		s->greeted = true;
		code_of(p, n, status);
		proto_refused(c, proto_name(c, "CONNECT", 7), status);
		return;
	}
	if (!s->greeted) {
		greeting(s, p, n);
		return;
	}
	if (!q || q->id != COM_CONNECT || (p[0] != 0 && p[0] != 0xff))
		return;
	if (p[0] == 0xff)
		fail(c, s, q, p, n);
	else
		over(c, s, q, PROTO_OK, "");
	s->handshake = false;
	s->compressed = s->compress_later;
}

/* An error that nothing asked for ends the connection: the client was silent for too long, the
 * server is shut down. */
static int64_t farewell(struct proto_conn *c, const uint8_t *p, size_t n, uint32_t len)
{
	char status[8];

	code_of(p + 4, n, status);
	proto_refused(c, proto_name(c, "CONNECTION", 10), status);
	return len + 4;
}

static int64_t server(struct proto_conn *c, struct mysql *s, const uint8_t *p, size_t n, bool last)
{
	struct proto_pending *q;
	size_t see;
	uint32_t len;
	bool more = s->more[PROTO_SERVER];

	if (n < 5 && !last)
		return n >= 4 && !le24(p) ? 4 : PROTO_MORE;
	if (n < 4)
		return PROTO_LOST;
	len = le24(p);
	see = len < (s->handshake ? 512 : 24) ? len : s->handshake ? 512 : 24;
	if (n - 4 < see && !last)
		return PROTO_MORE;
	see = see < n - 4 ? see : n - 4;
	s->more[PROTO_SERVER] = len == PACKET_MORE;
	if (!see)
		return see == len ? 4 : PROTO_LOST;
	if (s->handshake) {
		handshake(c, s, p + 4, see);
		return len + 4;
	}
	q = proto_oldest(c);
	if (!c->count && !more && see >= 3 && p[4] == 0xff && le16(p + 5) != PROGRESS)
		return farewell(c, p, see, len);
	if (!proto_newest(c))
		proto_unowned(c);
	if (more || !q || (see >= 3 && p[4] == 0xff && le16(p + 5) == PROGRESS))
		return len + 4;
	proto_first_byte(c, q);
	if (q->id == COM_BINLOG_DUMP || q->id == COM_BINLOG_DUMP_GTID) {
		proto_opened(c, q, "");
		return PROTO_ALL;
	}
	if (s->expects == FIRST)
		first_packet(c, s, q, p + 4, see, len);
	else
		later_packet(c, s, q, p + 4, see, len);
	return len + 4;
}

static int64_t packet(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
		      bool last)
{
	struct mysql *s = proto_state(c);

	return from == PROTO_CLIENT ? client(c, s, p, n, last) : server(c, s, p, n, last);
}

/* ---- the compressed stream ---- */

struct side {
	struct proto_conn *c;
	enum proto_side from;
};

/* Whole packets of what is unpacked. false: synchrony is lost. */
static bool inner_steps(struct side *side, struct inner *in)
{
	size_t at = 0;

	while (at < in->len) {
		int64_t k = packet(side->c, side->from, in->buf + at, in->len - at,
				   in->len - at == INNER_MAX);

		if (k < 0)
			return false;
		if (k == PROTO_MORE)
			break;
		if ((uint64_t)k > in->len - at) {
			in->skip = (uint64_t)k - (in->len - at);
			k = (int64_t)(in->len - at);
		}
		at += (size_t)k;
	}
	in->len -= at;
	memmove(in->buf, in->buf + at, in->len);
	return true;
}

static bool inner_take(void *ctx, const uint8_t *p, size_t n)
{
	struct side *side = ctx;
	struct mysql *s = proto_state(side->c);
	struct inner *in = &s->inner[side->from];

	while (n) {
		size_t some = in->skip < n ? (size_t)in->skip : n;

		in->skip -= some;
		p += some;
		n -= some;
		if (!n)
			break;
		some = INNER_MAX - in->len < n ? INNER_MAX - in->len : n;
		if (!in->buf)
			in->buf = mem_alloc(INNER_MAX);
		memcpy(in->buf + in->len, p, some);
		in->len += some;
		p += some;
		n -= some;
		if (!inner_steps(side, in))
			return false;
	}
	if (!in->len) {
		free(in->buf);
		in->buf = NULL;
	}
	return true;
}

static void frame_over(struct inner *in)
{
	unpack_free(in->unpack);
	in->unpack = NULL;
	in->packed = in->plain = 0;
}

static void inner_lost(struct mysql *s)
{
	for (int i = 0; i < 2; i++) {
		frame_over(&s->inner[i]);
		free(s->inner[i].buf);
		memset(&s->inner[i], 0, sizeof(s->inner[i]));
	}
}

/* What there is of the frame at hand, which is read as it comes. */
static int64_t frame_part(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	struct mysql *s = proto_state(c);
	struct inner *in = &s->inner[from];
	struct side side = {c, from};
	bool good;

	n = n < in->packed ? n : in->packed;
	in->packed -= (uint32_t)n;
	good = in->unpack ?
		       unpack_feed(in->unpack, p, n, &in->plain, c->now_ns, inner_take, &side) :
		       inner_take(&side, p, n);
	if (!good || (!in->packed && in->unpack && in->plain))
		return PROTO_LOST;
	if (in->packed)
		proto_goes_on(c);
	else
		frame_over(in);
	return (int64_t)n;
}

static int64_t frame(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	struct mysql *s = proto_state(c);
	struct inner *in = &s->inner[from];
	uint32_t len, plain;
	int64_t k;

	if (in->packed)
		return frame_part(c, from, p, n);
	if (n < FRAME_HEAD)
		return PROTO_MORE;
	len = le24(p);
	plain = le24(p + 4);
	if (in->skip && in->skip >= (plain ? plain : len)) { /* within a row's data: not unpacked */
		in->skip -= plain ? plain : len;
		return FRAME_HEAD + len;
	}
	if (!len)
		return plain ? PROTO_LOST : FRAME_HEAD;
	if (plain)
		in->unpack = unpack_new(s->zstd ? UNPACK_ZSTD : UNPACK_ZLIB, proto_unpacks(c));
	if (plain && !in->unpack)
		return PROTO_LOST;
	in->packed = len;
	in->plain = plain;
	k = frame_part(c, from, p + FRAME_HEAD, n - FRAME_HEAD);
	return k < 0 ? PROTO_LOST : FRAME_HEAD + k;
}

static int64_t mysql_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			  bool last)
{
	struct mysql *s = proto_state(c);

	return s->compressed ? frame(c, from, p, n) : packet(c, from, p, n, last);
}

static bool mysql_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	const struct mysql *s = proto_state(c);

	if (p != c->piece || n < 5)
		return false;
	if (s->compressed)
		return n >= 8 && !p[3] && le24(p) + 7u <= n && (from == PROTO_CLIENT || c->turn);
	if (from == PROTO_CLIENT)
		return !p[3] && le24(p) + 4u >= n && le24(p) &&
		       (p[4] == COM_EXECUTE || p[4] == COM_QUERY || p[4] == COM_PREPARE ||
			le24(p) + 4u == n) &&
		       (p[4] <= 31 || p[4] == COM_BULK_EXECUTE);
	return c->turn && p[3] == 1 && le24(p);
}

static void mysql_lost(struct proto_conn *c, enum proto_side from)
{
	struct mysql *s = proto_state(c);

	(void)from;
	s->handshake = s->file = s->data = false;
	s->more[0] = s->more[1] = false;
	s->expects = FIRST;
	inner_lost(s);
}

static void mysql_begin(struct proto_conn *c, bool begun)
{
	struct mysql *s = proto_state(c);

	s->handshake = begun;
}

static void mysql_release(struct proto_conn *c)
{
	struct mysql *s = proto_state(c);

	idtable_release(&s->statements);
	inner_lost(s);
}

const struct protocol protocol_mysql = {
	.name = "mysql",
	.in_order = true,
	.upgrades = true,
	.state_size = sizeof(struct mysql),
	.recognise = mysql_recognise,
	.begin = mysql_begin,
	.step = mysql_step,
	.starts = mysql_starts,
	.lost = mysql_lost,
	.release = mysql_release,
};
