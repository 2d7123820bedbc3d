/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/import.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"
#include "schema/jfr/jfr.h"
#include "tools/formats/folded_read.h"
#include "tools/formats/jfr/jfr_read.h"
#include "tools/formats/json/json_read.h"
#include "tools/formats/perfscript_read.h"
#include "tools/formats/pprof_legacy.h"
#include "tools/formats/pprof_read.h"
#include "tools/print/outfile.h"

#define GZIP_WINDOW (15 + 16)

static const char *const ENDS[] = {".pb.gz",     ".pb",   ".pprof", ".prof",           ".folded",
				   ".collapsed", ".perf", ".jfr",   ".speedscope.json"};

bool import_is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) ? import_knows(path) : !S_ISDIR(st.st_mode);
}

bool import_knows(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(ENDS); i++)
		if (outfile_ends_with(name, ENDS[i]))
			return true;
	return false;
}

static int too_large(const char *path, struct err *e)
{
	return err_set(e, -EFBIG, EXIT_USAGE,
		       "%.300s holds more than %llu MiB: too much for one profile", path,
		       (unsigned long long)(IMPORT_MAX >> 20));
}

static int read_file(const char *path, struct strbuf *to, struct err *e)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char buf[1 << 16];
	ssize_t n = -1;

	while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0) {
		if (to->len + (size_t)n > IMPORT_MAX)
			return too_large(path, e);
		strbuf_add(to, buf, (size_t)n);
	}
	if (n == 0)
		return 0;
	n = -errno;
	err_set(e, (int)n,
		n == -EACCES ? EXIT_PERMISSION :
		n == -ENOENT ? EXIT_USAGE :
			       EXIT_RUNTIME,
		"cannot read %.300s: %s", path, strerror((int)-n));
	return (int)n;
}

/* Zeros behind the last member, as tape and disk images have them, or nothing. */
static bool is_padding(const unsigned char *at, size_t n)
{
	while (n && !at[n - 1])
		n--;
	return !n;
}

static int unpack(const char *path, const struct strbuf *from, struct strbuf *to, struct err *e)
{
	z_stream z = {.next_in = (unsigned char *)from->buf, .avail_in = (uInt)from->len};
	unsigned char buf[1 << 16];
	int step = inflateInit2(&z, GZIP_WINDOW), rc = 0;

	while (step == Z_OK && !rc) {
		z.next_out = buf;
		z.avail_out = sizeof(buf);
		step = inflate(&z, Z_NO_FLUSH);
		if (to->len + sizeof(buf) > IMPORT_MAX)
			rc = too_large(path, e);
		strbuf_add(to, buf, sizeof(buf) - z.avail_out);
		if (step == Z_STREAM_END && !is_padding(z.next_in, z.avail_in))
			step = inflateReset(&z); /* gzip members may follow each other */
	}
	inflateEnd(&z);
	if (!rc && step != Z_STREAM_END)
		rc = err_set(e, -EBADMSG, EXIT_USAGE,
			     "%.300s cannot be unpacked: the gzip data is damaged or ends early",
			     path);
	return rc;
}

/* Folded stacks are text; the first fields of a profile.proto have control bytes as tags and
 * lengths. */
static bool looks_like_pprof(const struct strbuf *s)
{
	for (size_t i = 0; i < s->len && i < 64; i++)
		if ((unsigned char)s->buf[i] < 0x20 && !memchr("\t\r\n\033", s->buf[i], 4))
			return true;
	return false;
}

/* What people take for a profile, with what makes one of it. */
static int refuse_foreign(const struct strbuf *s, const char *path, struct err *e)
{
	static const struct {
		const char *magic, *what, *fix;
	} known[] = {
		{"PERFILE2", "perf's own recording", "perf script -i %.200s > x.perf"},
		{"2ELIFREP", "perf's own recording, of a host of the other byte order",
		 "perf script -i %.200s > x.perf"},
		{"\377\376", "text in UTF-16, or no text at all",
		 "iconv -f UTF-16 -t UTF-8 %.200s > x"},
		{"\376\377", "text in UTF-16, or no text at all",
		 "iconv -f UTF-16 -t UTF-8 %.200s > x"},
		{"\037\213", "packed twice with gzip", "zcat %.200s > x.gz"},
		{"SQLite format 3", "an SQLite database", "sonde stacks --store %.200s"},
		{"\177ELF", "an ELF file (a program or a core dump)", NULL},
		{"PK\3\4", "a zip archive", "unzip %.200s"},
		{"\50\265\57\375", "packed with zstd", "zstd -d %.200s"},
		{"BZh", "packed with bzip2", "bunzip2 %.200s"},
		{"\3757zXZ", "packed with xz", "unxz %.200s"},
		{"<!DOCTYPE", "an HTML page", NULL},
		{"<?xml", "XML", NULL},
		{"<svg", "an SVG picture", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const size_t n = strlen(known[i].magic);

		if (s->len < n || strncasecmp(s->buf, known[i].magic, n))
			continue;
		err_set(e, -ENOTSUP, EXIT_USAGE,
			"%.300s is %s: no profile in a format that is read", path, known[i].what);
		if (known[i].fix)
			err_fix(e, known[i].fix, path);
		return -ENOTSUP;
	}
	return 0;
}

/* As text, without the mark of UTF-8 that some editors put first. */
static int read_text(const char *text, size_t len, const char *path, const struct fold_opts *o,
		     struct fold **out, struct err *e)
{
	const size_t mark = len >= 3 && !memcmp(text, "\357\273\277", 3) ? 3 : 0;

	text += mark;
	len -= mark;
	if (json_read_looks(text, len))
		return json_read(text, len, path, o, out, e);
	if (perfscript_looks(text, len))
		return perfscript_read(text, len, path, o, out, e);
	return folded_read(text, len, path, o, out, e);
}

int import_file(const char *path, const struct fold_opts *o, struct fold **out, struct err *e)
{
	cleanup_strbuf struct strbuf raw = STRBUF_INIT, plain = STRBUF_INIT;
	const struct strbuf *data = &raw;
	int rc = read_file(path, &raw, e);

	if (rc)
		return rc;
	if (raw.len > 2 && (unsigned char)raw.buf[0] == 0x1f && (unsigned char)raw.buf[1] == 0x8b) {
		rc = unpack(path, &raw, &plain, e);
		data = &plain;
	}
	if (rc)
		return rc;
	rc = refuse_foreign(data, path, e);
	if (rc)
		return rc;
	rc = pprof_legacy_refuse(strbuf_str(data), data->len, path, e);
	if (rc)
		return rc;
	if (jfr_looks(data->buf, data->len))
		rc = jfr_import(data->buf, data->len, path, o, out, e);
	else if (looks_like_pprof(data))
		rc = pprof_read(data->buf, data->len, path, o, out, e);
	else
		rc = read_text(strbuf_str(data), data->len, path, o, out, e);
	if (rc || (*out)->nodes[0].total_samples)
		return rc;
	fold_free(*out);
	*out = NULL;
	return err_set(e, -ENODATA, EXIT_NOTHING, "%.300s holds no samples", path);
}
