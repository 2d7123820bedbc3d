/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/perfscript_read.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/strbuf.h"
#include "tools/fold/fold_build.h"

#define FRAMES_MAX   1024 /* of a stack */
#define SAMPLES_MAX  (8u << 20)
#define SUM_MAX      (UINT64_MAX / 4)
#define LOOK         (64u << 10)
#define HEADER_PARTS 64

struct part {
	const char *at;
	size_t len;
};

struct sample {
	struct part comm;
	uint32_t pid, tid;
	int64_t time_ns; /* -1: not there */
	uint64_t period; /* 0: not there */
	bool clock;
};

struct reading {
	struct fold_build *b;
	const struct fold_opts *o;
	struct sample sample; /* at hand */
	bool open;
	uint32_t frames[FRAMES_MAX];
	size_t n_frames, n_samples;
	int64_t first_ns, last_ns;
	uint64_t sum;
	bool timed; /* all have been of clocks, with periods */
};

static bool all_digits(struct part p)
{
	for (size_t i = 0; i < p.len; i++)
		if (!isdigit((unsigned char)p.at[i]))
			return false;
	return p.len > 0;
}

/* Up to 19 digits. */
static bool number(struct part p, uint64_t *v)
{
	*v = 0;
	if (!all_digits(p) || p.len > 19)
		return false;
	for (size_t i = 0; i < p.len; i++)
		*v = *v * 10 + (uint64_t)(p.at[i] - '0');
	return true;
}

/* "1234.567890:" */
static bool stamp(struct part p, int64_t *ns)
{
	const char *dot = p.len ? memchr(p.at, '.', p.len) : NULL;
	uint64_t s, fraction;
	struct part tail;

	if (!dot || p.at[p.len - 1] != ':')
		return false;
	tail = (struct part){dot + 1, p.len - (size_t)(dot + 1 - p.at) - 1};
	if (tail.len > 9 || !number((struct part){p.at, (size_t)(dot - p.at)}, &s) ||
	    !number(tail, &fraction) || s > 1ull << 32)
		return false;
	for (size_t i = tail.len; i < 9; i++)
		fraction *= 10;
	*ns = (int64_t)(s * NSEC_PER_SEC + fraction);
	return true;
}

static bool is_cpu(struct part p)
{
	return p.len > 2 && p.at[0] == '[' && p.at[p.len - 1] == ']' &&
	       all_digits((struct part){p.at + 1, p.len - 2});
}

static bool ids(struct part p, struct sample *s)
{
	const char *slash = memchr(p.at, '/', p.len);
	struct part first = {p.at, slash ? (size_t)(slash - p.at) : p.len};
	struct part second = slash ? (struct part){slash + 1, p.len - first.len - 1} : first;
	uint64_t pid, tid;

	if (!number(first, &pid) || !number(second, &tid) || pid > UINT32_MAX || tid > UINT32_MAX)
		return false;
	s->pid = (uint32_t)pid;
	s->tid = (uint32_t)tid;
	return true;
}

static size_t split(const char *line, size_t len, struct part *parts)
{
	size_t n = 0;

	for (size_t i = 0; i < len;) {
		size_t end;

		while (i < len && isspace((unsigned char)line[i]))
			i++;
		for (end = i; end < len && !isspace((unsigned char)line[end]); end++)
			;
		if (end > i && n == HEADER_PARTS)
			return 0;
		if (end > i)
			parts[n++] = (struct part){line + i, end - i};
		i = end;
	}
	return n;
}

static bool is_clock(struct part event)
{
	return memmem(event.at, event.len, "cpu-clock", 9) ||
	       memmem(event.at, event.len, "task-clock", 10);
}

/* From the right, as point 1 has it. */
static const char *read_header(struct reading *r, const char *line, size_t len)
{
	struct sample *s = &r->sample;
	struct part parts[HEADER_PARTS];
	size_t n = split(line, len, parts);

	*s = (struct sample){.time_ns = -1};
	if (n && parts[n - 1].at[parts[n - 1].len - 1] == ':' &&
	    !stamp(parts[n - 1], &s->time_ns)) {
		s->clock = is_clock(parts[n - 1]);
		n--;
	}
	if (n && s->time_ns < 0 && n > 1 && all_digits(parts[n - 1]) &&
	    stamp(parts[n - 2], &s->time_ns)) {
		if (!number(parts[n - 1], &s->period))
			return "has a period that is too large";
		n -= 2;
	} else if (n && (s->time_ns >= 0 || stamp(parts[n - 1], &s->time_ns))) {
		n--;
	}
	if (n && is_cpu(parts[n - 1]))
		n--;
	if (n < 2 || !ids(parts[n - 1], s))
		return "is not a sample: it lacks a command, or a pid before its time";
	s->comm = (struct part){parts[0].at,
				(size_t)(parts[n - 2].at + parts[n - 2].len - parts[0].at)};
	return NULL;
}

/* --- frames --- */

static void add_hex(struct strbuf *out, const char *module, uint64_t address)
{
	strbuf_addf(out, "%s+0x%llx", *module ? module : "[unknown]", (unsigned long long)address);
}

/* "/usr/bin/app" -> "app"; what perf calls the kernel is "[kernel]", and a perf map "[jit]". */
static const char *module_of(struct fold_build *b, struct part path, enum fold_origin *origin)
{
	const char *slash = path.len ? memrchr(path.at, '/', path.len) : NULL;
	struct strbuf s cleanup_strbuf = STRBUF_INIT;

	*origin = FOLD_NATIVE;
	if (path.len >= 7 && (!memcmp(path.at, "[kernel", 7) || !memcmp(path.at, "[guest.", 7))) {
		*origin = FOLD_KERNEL;
		return fold_text(b, "[kernel]");
	}
	if (slash && (size_t)(path.at + path.len - slash) > 6 && !memcmp(slash + 1, "perf-", 5) &&
	    !memcmp(path.at + path.len - 4, ".map", 4)) {
		*origin = FOLD_JIT;
		return fold_text(b, "[jit]");
	}
	if (path.len == 9 && !memcmp(path.at, "[unknown]", 9))
		return fold_text(b, "");
	if (path.len && path.at[0] == '[')
		*origin = path.at[path.len - 1] == ']' ? FOLD_KERNEL : FOLD_NATIVE;
	strbuf_add(&s, slash ? slash + 1 : path.at,
		   slash ? path.len - (size_t)(slash + 1 - path.at) : path.len);
	return fold_text(b, strbuf_str(&s));
}

static struct part without_offset(struct part name)
{
	for (size_t i = name.len; i-- > 1;) {
		if (name.at[i] == '+')
			return i + 2 < name.len && name.at[i + 1] == '0' && name.at[i + 2] == 'x' ?
				       (struct part){name.at, i} :
				       name;
		if (!isxdigit((unsigned char)name.at[i]) && name.at[i] != 'x')
			break;
	}
	return name;
}

/* The last "(...)" of a line, and the text before it. */
static bool take_brackets(struct part *line, struct part *inside)
{
	size_t depth = 0;

	if (!line->len || line->at[line->len - 1] != ')')
		return false;
	for (size_t i = line->len; i-- > 0;) {
		depth += line->at[i] == ')';
		depth -= line->at[i] == '(';
		if (depth)
			continue;
		*inside = (struct part){line->at + i + 1, line->len - i - 2};
		line->len = i;
		while (line->len && isspace((unsigned char)line->at[line->len - 1]))
			line->len--;
		return true;
	}
	return false;
}

static const char *read_frame(struct reading *r, const char *at, size_t len)
{
	struct fold_build *b = r->b;
	struct strbuf s cleanup_strbuf = STRBUF_INIT;
	struct part line = {at, len}, file = {at, 0};
	struct fold_frame fr = {.build_id = fold_text(b, ""),
				.file = fold_text(b, ""),
				.module_path = fold_text(b, "")};
	uint64_t address = 0;
	size_t digits = 0;

	if (!r->open)
		return "is a frame without a sample before it";
	while (line.len && isspace((unsigned char)*line.at))
		line = (struct part){line.at + 1, line.len - 1};
	for (; digits < line.len && digits < 16 && isxdigit((unsigned char)line.at[digits]);
	     digits++)
		address = address << 4 | (uint64_t)(isdigit((unsigned char)line.at[digits]) ?
							    line.at[digits] - '0' :
							    (line.at[digits] | 32) - 'a' + 10);
	if (!digits || (digits < line.len && !isspace((unsigned char)line.at[digits])))
		return "is not a frame: it does not begin with an address";
	line = (struct part){line.at + digits, line.len - digits};
	while (line.len && isspace((unsigned char)*line.at))
		line = (struct part){line.at + 1, line.len - 1};
	take_brackets(&line, &file);
	fr.inlined = file.len == 7 && !memcmp(file.at, "inlined", 7);
	if (fr.inlined)
		file.len = 0;
	fr.module = module_of(b, file, &fr.origin);
	line = without_offset(line);
	fr.named = line.len && !(line.len == 9 && !memcmp(line.at, "[unknown]", 9));
	if (fr.named)
		strbuf_add(&s, line.at, line.len);
	else
		add_hex(&s, fr.module, address);
	fr.name = fold_text(b, strbuf_str(&s));
	fr.offset = fr.named ? 0 : address;
	if (r->n_frames == FRAMES_MAX)
		return "is one frame more than a stack may have";
	r->frames[r->n_frames++] = fold_add_frame(b, &fr);
	return NULL;
}

/* --- samples --- */

static uint32_t process_of(struct fold_build *b, const struct sample *s)
{
	const char *none = fold_text(b, "");
	struct strbuf comm cleanup_strbuf = STRBUF_INIT;
	uint64_t identity;
	uint32_t i;

	strbuf_add(&comm, s->comm.at, s->comm.len);
	identity = hash_u64(HASH_SEED, s->pid);
	if (!fold_known_process(b, identity, &i))
		i = fold_add_process(b, identity,
				     &(struct fold_process){.pid = s->pid,
							    .comm = fold_text(b, strbuf_str(&comm)),
							    .exe = none,
							    .args = none,
							    .container = none,
							    .container_id = none,
							    .container_image = none,
							    .unit = none,
							    .lang = none,
							    .lang_runtime = none});
	return i;
}

static const char *end_sample(struct reading *r)
{
	struct fold_build *b = r->b;
	struct strbuf thread cleanup_strbuf = STRBUF_INIT;
	uint64_t ns = r->sample.clock && r->sample.period ? r->sample.period : 0;
	uint32_t node = 0, process;
	int64_t second = 0;

	if (!r->open)
		return NULL;
	r->open = false;
	if (++r->n_samples > SAMPLES_MAX)
		return "is an empty line without a sample before it";
	r->timed = ns && (r->timed || r->n_samples == 1);
	for (size_t i = r->n_frames; i-- > 0;)
		node = fold_child(b, node, r->frames[i]);
	process = process_of(b, &r->sample);
	if (r->sample.time_ns >= 0) {
		r->first_ns = r->first_ns < 0 ? r->sample.time_ns : r->first_ns;
		r->last_ns = r->sample.time_ns > r->last_ns ? r->sample.time_ns : r->last_ns;
		second = r->sample.time_ns > r->first_ns ?
				 (r->sample.time_ns - r->first_ns) / NSEC_PER_SEC :
				 0;
	}
	if (ns > SUM_MAX - r->sum)
		return "makes the sum too large";
	r->sum += ns;
	b->pub.nodes[node].self_ns += ns;
	b->pub.nodes[node].self_samples++;
	b->pub.processes[process].ns += ns;
	b->pub.processes[process].samples++;
	strbuf_add(&thread, r->sample.comm.at, r->sample.comm.len);
	if (r->o->leaves)
		fold_add_leaf(b, &(struct fold_leaf){.node = node,
						     .process = process,
						     .thread = fold_text(b, strbuf_str(&thread)),
						     .tid = r->sample.tid,
						     .slice = (uint32_t)second,
						     .samples = 1,
						     .ns = ns});
	return NULL;
}

static const char *read_line(struct reading *r, const char *line, size_t len)
{
	const char *why;

	while (len && isspace((unsigned char)line[len - 1]))
		len--;
	if (!len)
		return end_sample(r);
	if (*line == '#')
		return NULL;
	if (isspace((unsigned char)*line) && r->open)
		return read_frame(r, line, len);
	while (len && isspace((unsigned char)*line)) { /* perf indents short commands */
		line++;
		len--;
	}
	why = end_sample(r);
	if (why)
		return why;
	r->n_frames = 0;
	why = read_header(r, line, len);
	r->open = !why;
	return why;
}

/* Samples without time: they are what is counted, and what is drawn. */
static void count_samples(struct fold_build *b)
{
	b->pub.unit = STORE_SAMPLES;
	for (size_t i = 0; i < b->pub.n_nodes; i++)
		b->pub.nodes[i].self_ns = b->pub.nodes[i].self_samples;
	for (size_t i = 0; i < b->pub.n_processes; i++)
		b->pub.processes[i].ns = b->pub.processes[i].samples;
	for (size_t i = 0; i < b->pub.n_leaves; i++)
		b->pub.leaves[i].ns = b->pub.leaves[i].samples;
}

int perfscript_read(const void *data, size_t len, const char *name, const struct fold_opts *o,
		    struct fold **out, struct err *e)
{
	struct reading r = {.b = fold_begin(), .o = o, .first_ns = -1};
	const char *at = data, *end = at + len, *why = NULL;
	unsigned long line = 0;
	struct fold *f;

	while (at < end && !why) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		line++;
		why = read_line(&r, at, (size_t)((stop ? stop : end) - at));
		at = stop ? stop + 1 : end;
	}
	why = why ? why : end_sample(&r);
	if (!r.timed)
		count_samples(r.b);
	f = fold_end(r.b);
	if (why) {
		fold_free(f);
		err_set(e, -EBADMSG, EXIT_USAGE, "%.300s is not perf script output: line %lu %s",
			name, line, why);
		err_fix(e, "perf script -i perf.data > x.perf");
		return -EBADMSG;
	}
	if (r.timed && r.last_ns > r.first_ns) {
		f->from_ns = r.first_ns;
		f->to_ns = r.last_ns + (r.last_ns - r.first_ns) / (int64_t)r.n_samples;
		f->period_ns = r.sum / r.n_samples;
	}
	f->slice_ns = r.first_ns >= 0 ? NSEC_PER_SEC : 0;
	*out = f;
	return 0;
}

/* A line that begins with white space and an address, which folded stacks have not. */
bool perfscript_looks(const char *data, size_t len)
{
	const char *at = data, *end = data + (len < LOOK ? len : LOOK);

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at)), *p = at;
		size_t digits = 0;

		stop = stop ? stop : end;
		while (p < stop && (*p == ' ' || *p == '\t'))
			p++;
		while (p + digits < stop && isxdigit((unsigned char)p[digits]))
			digits++;
		if (p > at && digits >= 3 && digits <= 16 && p + digits < stop && p[digits] == ' ')
			return true;
		at = stop + 1;
	}
	return false;
}
