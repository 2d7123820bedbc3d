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
#define EVENTS_MAX   16
#define NOT_A_FRAME  "is not a frame: it does not begin with an address"

struct part {
	const char *at;
	size_t len;
};

struct sample {
	struct part comm;
	uint32_t pid, tid;
	int64_t time_ns;   /* -1: not there */
	uint64_t period;   /* 0: not there */
	struct part event; /* without modifiers; empty: not there */
	struct part rest;  /* what follows the event on the line: without -g the frame */
	bool clock;
};

struct event {
	struct part name;
	uint64_t n;
};

struct reading {
	struct fold_build *b;
	const struct fold_opts *o;
	struct sample sample; /* at hand */
	bool open;
	bool skip;               /* the sample at hand is of another event */
	struct fold_frame frame; /* at hand: its source line may follow */
	bool has_frame;
	struct event events[EVENTS_MAX]; /* the first n_events that came; [0] is read, unless
					    opts->event asks for another */
	size_t n_events;
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
			break;
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

/* -F +misc: K, U, H, G, g, and letters of records that are no samples */
static bool is_misc(struct part p)
{
	for (size_t i = 0; i < p.len; i++)
		if (!memchr("KUHGgMESp", p.at[i], 9))
			return false;
	return p.len > 0;
}

static bool is_event(struct part p)
{
	int64_t ns;

	return p.len > 1 && p.at[p.len - 1] == ':' && !stamp(p, &ns);
}

/* Does it begin as a frame does: a hexadecimal number and a space? */
static bool leads_with_address(struct part p)
{
	size_t digits = 0;

	while (digits < p.len && isxdigit((unsigned char)p.at[digits]))
		digits++;
	return digits && digits <= 16 && digits < p.len && isspace((unsigned char)p.at[digits]);
}

static bool is_frame(struct part p)
{
	return leads_with_address(p) && p.at[p.len - 1] == ')';
}

/* "cycles:ppp" is "cycles". */
static struct part without_modifiers(struct part event)
{
	for (size_t i = event.len; i-- > 1;) {
		if (event.at[i] == ':')
			return (struct part){event.at, i};
		if (!memchr("ukhIGHpPSDWeb", event.at[i], 13))
			break;
	}
	return event;
}

/* What follows the ids at parts[i]: true if it is all of a head line. */
static bool read_after_ids(struct part line, const struct part *parts, size_t n, size_t i,
			   struct sample *s)
{
	const char *end = line.at + line.len;

	if (i < n && is_cpu(parts[i]))
		i++;
	if (i + 1 < n && is_misc(parts[i]) && stamp(parts[i + 1], &s->time_ns))
		i++;
	if (i < n && stamp(parts[i], &s->time_ns))
		i++;
	else
		s->time_ns = -1;
	if (i + 1 < n && is_event(parts[i + 1]) && all_digits(parts[i])) {
		if (!number(parts[i], &s->period))
			return false;
		i++;
	}
	if (i < n && is_event(parts[i])) {
		s->event = without_modifiers((struct part){parts[i].at, parts[i].len - 1});
		s->clock = is_clock(s->event);
		i++;
	}
	if (i == n)
		return true;
	s->rest = (struct part){parts[i].at, (size_t)(end - parts[i].at)};
	/* a tracepoint has its fields there */
	return s->event.len && (s->time_ns >= 0 || is_frame(s->rest));
}

/* As point 1 has it: the first number that may be the ids, by what follows it. */
static bool read_header(struct part line, struct sample *s)
{
	struct part parts[HEADER_PARTS];
	const size_t n = split(line.at, line.len, parts);

	for (size_t i = 1; i < n; i++) {
		*s = (struct sample){.time_ns = -1};
		if (!ids(parts[i], s) || !read_after_ids(line, parts, n, i + 1, s))
			continue;
		s->comm = (struct part){parts[0].at,
					(size_t)(parts[i - 1].at + parts[i - 1].len - parts[0].at)};
		return true;
	}
	return false;
}

/* --- events --- */

static bool same(struct part a, struct part b)
{
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

static bool is_named(struct part event, const char *name)
{
	return same(event, without_modifiers((struct part){name, strlen(name)}));
}

/* Counts it; true: it is the event that is read. */
static bool note_event(struct reading *r, struct part event)
{
	size_t i = 0;

	while (i < r->n_events && !same(r->events[i].name, event))
		i++;
	if (i == r->n_events && i < EVENTS_MAX)
		r->events[r->n_events++] = (struct event){.name = event};
	if (i < EVENTS_MAX)
		r->events[i].n++;
	if (r->o->event)
		return is_named(event, r->o->event);
	return i == 0;
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

/* The frame at hand, with its source line. */
static const char *flush_frame(struct reading *r)
{
	if (!r->has_frame)
		return NULL;
	r->has_frame = false;
	if (r->n_frames == FRAMES_MAX)
		return "is one frame more than a stack may have";
	r->frames[r->n_frames++] = fold_add_frame(r->b, &r->frame);
	return NULL;
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

	const char *why = flush_frame(r);

	if (why)
		return why;
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
		return NOT_A_FRAME;
	if (r->skip)
		return NULL;
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
	r->frame = fr;
	r->has_frame = true;
	return NULL;
}

/* -F +srcline: "main.c:7" below a frame; "name+12" and "libx.so[1a2b]" where none is known. */
static bool read_source(struct reading *r, struct part p)
{
	size_t digits = 0;
	uint64_t line;

	if (!r->has_frame)
		return false;
	if (p.len > 10 && !memcmp(p.at + p.len - 10, " (inlined)", 10))
		p.len -= 10;
	if (p.len > 2 && p.at[p.len - 1] == ']')
		return memchr(p.at, '[', p.len) && !memchr(p.at, ' ', p.len);
	while (digits < p.len && isdigit((unsigned char)p.at[p.len - digits - 1]))
		digits++;
	if (!digits || digits == p.len)
		return false;
	if (p.at[p.len - digits - 1] == '+')
		return !memchr(p.at, ' ', p.len);
	if (p.at[p.len - digits - 1] != ':')
		return false;
	if (number((struct part){p.at + p.len - digits, digits}, &line) && line &&
	    line < INT32_MAX && p.at[0] != '?') {
		struct strbuf s cleanup_strbuf = STRBUF_INIT;

		strbuf_add(&s, p.at, p.len - digits - 1);
		r->frame.file = fold_text(r->b, strbuf_str(&s));
		r->frame.line = (uint32_t)line;
	}
	return true;
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

	const char *why = flush_frame(r);

	if (!r->open || why)
		return why;
	r->open = false;
	if (r->skip)
		return NULL;
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

static const char *begin_sample(struct reading *r, const struct sample *s)
{
	const char *why = end_sample(r);

	if (why)
		return why;
	r->sample = *s;
	r->n_frames = 0;
	r->open = true;
	r->skip = !note_event(r, s->event);
	return is_frame(s->rest) ? read_frame(r, s->rest.at, s->rest.len) : NULL;
}

/* "perf 1 [000] 5.0: PERF_RECORD_MMAP2 ...": --show-mmap-events and its kin */
static bool is_record(struct part line)
{
	return memmem(line.at, line.len, ": PERF_RECORD_", 14) != NULL;
}

static const char *read_line(struct reading *r, const char *at, size_t len)
{
	struct part line = {at, len};
	struct sample s;
	const char *why;

	while (line.len && isspace((unsigned char)line.at[line.len - 1]))
		line.len--;
	if (!line.len)
		return end_sample(r);
	if (*line.at == '#')
		return NULL;
	while (isspace((unsigned char)*line.at)) /* perf indents short commands */
		line = (struct part){line.at + 1, line.len - 1};
	if (is_record(line))
		return end_sample(r);
	if (read_header(line, &s) && (!r->open || s.event.len || s.time_ns >= 0))
		return begin_sample(r, &s);
	if (!r->open)
		return "is not a sample: it lacks a command, or a pid before its time";
	if (r->has_frame && !leads_with_address(line) && read_source(r, line))
		return NULL;
	why = read_frame(r, line.at, line.len);
	return r->skip && why && !strcmp(why, NOT_A_FRAME) ? NULL : why;
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

static void list_events(const struct reading *r, struct strbuf *out)
{
	for (size_t i = 0; i < r->n_events; i++)
		strbuf_addf(out, "%s%.*s (%llu)", i ? ", " : "",
			    (int)(r->events[i].name.len < 60 ? r->events[i].name.len : 60),
			    r->events[i].name.at, (unsigned long long)r->events[i].n);
}

/* The events that were not read, as what the import has not. */
static void note_left_out(struct reading *r)
{
	for (size_t i = 0; i < r->n_events; i++) {
		struct strbuf s cleanup_strbuf = STRBUF_INIT;

		if (r->o->event ? is_named(r->events[i].name, r->o->event) : i == 0)
			continue;
		strbuf_add(&s, r->events[i].name.at, r->events[i].name.len);
		fold_add_loss(r->b,
			      &(struct fold_loss){.reason = strbuf_str(&s), .n = r->events[i].n});
	}
}

static int no_such_event(const struct reading *r, const char *name, struct err *e)
{
	struct strbuf holds cleanup_strbuf = STRBUF_INIT;

	list_events(r, &holds);
	return err_set(e, -EINVAL, EXIT_USAGE,
		       "%.300s has no samples of --event %.60s: its events are %.400s", name,
		       r->o->event, strbuf_str(&holds));
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
	note_left_out(&r);
	f = fold_end(r.b);
	if (why) {
		fold_free(f);
		err_set(e, -EBADMSG, EXIT_USAGE, "%.300s is not perf script output: line %lu %s",
			name, line, why);
		err_fix(e, "perf script -i perf.data > x.perf");
		return -EBADMSG;
	}
	if (o->event && !r.n_samples && r.n_events) {
		fold_free(f);
		return no_such_event(&r, name, e);
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

/* Of folded stacks no line ends as a head line or a frame does. */
bool perfscript_looks(const char *data, size_t len)
{
	const char *at = data, *end = data + (len < LOOK ? len : LOOK);

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		struct part line = {at, (size_t)((stop ? stop : end) - at)};
		struct sample s;

		at = stop ? stop + 1 : end;
		while (line.len && isspace((unsigned char)line.at[line.len - 1]))
			line.len--;
		if (line.len && isspace((unsigned char)*line.at)) {
			while (isspace((unsigned char)*line.at))
				line = (struct part){line.at + 1, line.len - 1};
			if (leads_with_address(line) &&
			    !all_digits((struct part){line.at, line.len}))
				return true;
		}
		if (line.len && *line.at != '#' && read_header(line, &s) &&
		    (s.time_ns >= 0 || s.event.len) &&
		    (!s.rest.len || line.at[line.len - 1] == ')'))
			return true;
	}
	return false;
}
