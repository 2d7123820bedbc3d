/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/jvmfile.h"

#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/facts/jvm.h"

#define HEAD        32
#define ENTRY       20
#define ENTRIES_MAX 8192
#define MAGIC       0xcafec0c0u

/* Values that are no column by themselves. */
enum { TICKS_A_SECOND = JVM_N, LOADED_SHARED, UNLOADED_SHARED, VALUES };

static const struct known {
	const char *name;
	int value; /* a column, or one of those above: of several with the same all are added up */
} KNOWN[] = {
	{"sun.os.hrt.frequency", TICKS_A_SECOND},
	{"sun.gc.collector.0.invocations", JVM_YOUNG_GCS},
	{"sun.gc.collector.0.time", JVM_YOUNG_GC_US},
	{"sun.gc.collector.1.invocations", JVM_FULL_GCS},
	{"sun.gc.collector.1.time", JVM_FULL_GC_US},
	{"sun.gc.collector.2.invocations", JVM_CONCURRENT_GCS},
	{"sun.gc.collector.2.time", JVM_CONCURRENT_GC_US},
	{"sun.rt.safepoints", JVM_SAFEPOINTS},
	{"sun.rt.safepointTime", JVM_SAFEPOINT_US},
	{"sun.rt.safepointSyncTime", JVM_SAFEPOINT_SYNC_US},
	{"sun.gc.generation.0.space.0.used", JVM_YOUNG_USED},
	{"sun.gc.generation.0.space.1.used", JVM_YOUNG_USED},
	{"sun.gc.generation.0.space.2.used", JVM_YOUNG_USED},
	{"sun.gc.generation.0.capacity", JVM_YOUNG_COMMITTED},
	{"sun.gc.generation.0.maxCapacity", JVM_YOUNG_MAX},
	{"sun.gc.generation.1.space.0.used", JVM_OLD_USED},
	{"sun.gc.generation.1.capacity", JVM_OLD_COMMITTED},
	{"sun.gc.generation.1.maxCapacity", JVM_OLD_MAX},
	{"sun.gc.metaspace.used", JVM_META_USED},
	{"sun.gc.metaspace.capacity", JVM_META_COMMITTED},
	{"java.threads.live", JVM_THREADS},
	{"java.threads.daemon", JVM_DAEMONS},
	{"java.cls.loadedClasses", JVM_LOADED},
	{"java.cls.unloadedClasses", JVM_UNLOADED},
	{"java.cls.sharedLoadedClasses", LOADED_SHARED},
	{"java.cls.sharedUnloadedClasses", UNLOADED_SHARED},
};

static const int TIMES[] = {JVM_YOUNG_GC_US, JVM_FULL_GC_US, JVM_CONCURRENT_GC_US, JVM_SAFEPOINT_US,
			    JVM_SAFEPOINT_SYNC_US};

struct file {
	const uint8_t *data;
	size_t len;
	bool little;
};

/* What was found: values, and texts. */
struct found {
	uint64_t value[VALUES];
	bool has[VALUES];
	char young[60], all[60], version[64];
};

static uint32_t u32(const struct file *f, size_t at)
{
	uint32_t v;

	memcpy(&v, f->data + at, sizeof(v));
	return f->little ? le32toh(v) : be32toh(v);
}

static uint64_t u64(const struct file *f, size_t at)
{
	uint64_t v;

	memcpy(&v, f->data + at, sizeof(v));
	return f->little ? le64toh(v) : be64toh(v);
}

/* Ended by NUL within its entry, and printable; it borders nothing else. */
static void text_take(const struct file *f, size_t at, size_t len, char *out, size_t size)
{
	const char *s = (const char *)f->data + at;
	size_t n = strnlen(s, len);

	n = n < size - 1 ? n : size - 1;
	for (size_t i = 0; i < n; i++)
		out[i] = s[i];
	for (size_t i = 0; i < n; i++)
		if (out[i] < ' ' || out[i] > '~')
			out[i] = '?';
	out[n] = 0;
}

static void long_take(struct found *x, const char *name, int64_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(KNOWN); i++) {
		if (strcmp(KNOWN[i].name, name) != 0)
			continue;
		if (n < 0 || __builtin_add_overflow(x->value[KNOWN[i].value], (uint64_t)n,
						    &x->value[KNOWN[i].value]))
			return;
		x->has[KNOWN[i].value] = true;
	}
}

/* False: it says what cannot be. */
static bool entry_take(const struct file *f, size_t at, size_t len, struct found *x)
{
	uint32_t name = u32(f, at + 4), vector = u32(f, at + 8), data = u32(f, at + 16);
	const char *s;

	if (name >= len || data > len || !memchr(f->data + at + name, 0, len - name))
		return false;
	s = (const char *)f->data + at + name;
	if (f->data[at + 12] == 'J' && !vector) {
		if (data + 8ull > len)
			return false;
		long_take(x, s, (int64_t)u64(f, at + data));
		return true;
	}
	if (f->data[at + 12] != 'B' || !vector || vector > len - data)
		return true;
	if (!strcmp(s, "sun.gc.collector.0.name"))
		text_take(f, at + data, vector, x->young, sizeof(x->young));
	else if (!strcmp(s, "sun.gc.collector.1.name"))
		text_take(f, at + data, vector, x->all, sizeof(x->all));
	else if (!strcmp(s, "java.property.java.version"))
		text_take(f, at + data, vector, x->version, sizeof(x->version));
	return true;
}

static bool entries_take(const struct file *f, struct found *x)
{
	size_t at = u32(f, 24);
	uint32_t n = u32(f, 28);

	if (at < HEAD || n > ENTRIES_MAX)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t len;

		if (at > f->len || f->len - at < ENTRY)
			return false;
		len = u32(f, at);
		if (len < ENTRY || len > f->len - at || !entry_take(f, at, len, x))
			return false;
		at += len;
	}
	return n > 0;
}

static uint64_t us_of(uint64_t ticks, uint64_t a_second)
{
	return (uint64_t)((unsigned __int128)ticks * 1000000 / a_second);
}

static void columns_put(struct found *x, struct fact_row *row)
{
	uint64_t a_second = x->has[TICKS_A_SECOND] ? x->value[TICKS_A_SECOND] : 0;
	uint64_t loaded, unloaded;

	for (size_t i = 0; i < ARRAY_SIZE(TIMES); i++) {
		x->has[TIMES[i]] = x->has[TIMES[i]] && a_second > 0 && a_second <= 1000000000000;
		if (x->has[TIMES[i]])
			x->value[TIMES[i]] = us_of(x->value[TIMES[i]], a_second);
	}
	if (x->has[JVM_LOADED] && x->has[JVM_UNLOADED]) {
		loaded = x->value[JVM_LOADED] += x->value[LOADED_SHARED];
		unloaded = x->value[JVM_UNLOADED] += x->value[UNLOADED_SHARED];
		if (loaded >= unloaded)
			fact_put(row, JVM_CLASSES, loaded - unloaded);
	}
	for (int i = 0; i < JVM_N; i++)
		if (x->has[i])
			fact_put(row, i, x->value[i]);
}

bool jvmfile_parse(const void *data, size_t len, struct jvmfile *out)
{
	struct file f = {.data = data, .len = len};
	struct found x = {0};
	uint32_t magic;

	*out = (struct jvmfile){0};
	if (len < HEAD || len > JVMFILE_MAX)
		return false;
	memcpy(&magic, data, sizeof(magic));
	f.little = f.data[4] == 1;
	if (be32toh(magic) != MAGIC || f.data[4] > 1 || f.data[5] != 2 || f.data[7] != 1 ||
	    !entries_take(&f, &x))
		return false;
	columns_put(&x, &out->row);
	snprintf(out->collector, sizeof(out->collector), "%s%s%s", x.young,
		 *x.young && *x.all ? ", " : "", x.all);
	snprintf(out->version, sizeof(out->version), "%s", x.version);
	return true;
}

/* ---- which one it is ---- */

/* "START-END PERMS OFFSET MAJOR:MINOR INODE   PATH" */
static bool line_take(const char *line, size_t len, char *path, size_t size, uint64_t *ino)
{
	const char *slash = memchr(line, '/', len), *end = line + len;
	unsigned long long inode;
	char head[128];
	size_t n = slash ? (size_t)(slash - line) : 0, plen = slash ? (size_t)(end - slash) : 0;

	if (!n || n >= sizeof(head) || plen >= size || !memmem(slash, plen, "/hsperfdata_", 12) ||
	    (plen > 10 && !memcmp(end - 10, " (deleted)", 10)))
		return false;
	memcpy(head, line, n);
	head[n] = 0;
	if (sscanf(head, "%*x-%*x %*4s %*x %*x:%*x %llu", &inode) != 1 || !inode)
		return false;
	memcpy(path, slash, plen);
	path[plen] = 0;
	*ino = inode;
	return true;
}

bool jvmfile_mapped(const char *maps, size_t len, char *path, size_t size, uint64_t *ino)
{
	const char *at = maps, *end = maps + len;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at)),
			   *stop = newline ? newline : end;

		if (line_take(at, (size_t)(stop - at), path, size, ino))
			return true;
		at = stop + 1;
	}
	return false;
}
