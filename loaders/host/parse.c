/* SPDX-License-Identifier: Apache-2.0 */
/* Each walks its bytes once, word by word. */
#include "loaders/host/parse.h"

#include <string.h>

#include "schema/base/array.h"
#include "schema/facts/host.h"

#define USEC         1000000ull
#define NO_LIMIT     (1ull << 60) /* v1 writes PAGE_COUNTER_MAX pages: no limit */
#define TASK_KTHREAD 0x00200000u  /* PF_KTHREAD */
#define SECTOR       512

struct words { /* the rest of one line */
	const char *p, *end;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The next line of a text; false: the end. */
static bool line_next(const char *text, size_t len, size_t *pos, struct words *out)
{
	const char *stop;

	if (*pos >= len)
		return false;
	stop = memchr(text + *pos, '\n', len - *pos);
	out->p = text + *pos;
	out->end = stop ? stop : text + len;
	*pos = (size_t)(out->end - text) + 1;
	return true;
}

/* The next word; its length, 0: the end. */
static size_t word_next(struct words *w, const char **word)
{
	while (w->p < w->end && is_blank(*w->p))
		w->p++;
	*word = w->p;
	while (w->p < w->end && !is_blank(*w->p))
		w->p++;
	return (size_t)(w->p - *word);
}

/* Digits at the beginning of a word; false: none, or too many. */
static bool number_of(const char *word, size_t len, uint64_t *out)
{
	uint64_t n = 0;
	size_t i = 0;

	for (; i < len && word[i] >= '0' && word[i] <= '9'; i++)
		if (__builtin_mul_overflow(n, 10ull, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(word[i] - '0'), &n))
			return false;
	if (i)
		*out = n;
	return i > 0;
}

static bool number_next(struct words *w, uint64_t *out)
{
	const char *word;
	size_t len = word_next(w, &word);

	return number_of(word, len, out);
}

/* As many as there are, at most `max`. */
static size_t numbers_next(struct words *w, uint64_t *out, size_t max)
{
	size_t n = 0;

	while (n < max && number_next(w, &out[n]))
		n++;
	return n;
}

static void put_scaled(struct fact_row *out, int column, uint64_t n, uint64_t mul, uint64_t div)
{
	if (!__builtin_mul_overflow(n, mul ? mul : 1, &n))
		fact_put(out, column, n / (div ? div : 1));
}

static void put_key(struct fact_row *out, const struct parse_key *key, uint64_t n)
{
	uint64_t before =
		key->add && fact_has(out, key->column) ? (uint64_t)out->v[key->column].number : 0;

	put_scaled(out, key->column, n, key->mul, key->div);
	if (before && fact_has(out, key->column))
		fact_put(out, key->column, (uint64_t)out->v[key->column].number + before);
}

void parse_keys(const char *text, size_t len, const struct parse_key *keys, size_t n,
		struct fact_row *out)
{
	struct words line;
	size_t pos = 0;

	while (line_next(text, len, &pos, &line)) {
		const char *name;
		size_t name_len = word_next(&line, &name);
		uint64_t value;

		if (name_len && name[name_len - 1] == ':')
			name_len--;
		for (size_t i = 0; i < n; i++) {
			if (strlen(keys[i].name) != name_len ||
			    memcmp(keys[i].name, name, name_len))
				continue;
			if (number_next(&line, &value))
				put_key(out, &keys[i], value);
			break;
		}
	}
}

bool parse_number(const char *text, size_t len, uint64_t *out)
{
	struct words line;
	size_t pos = 0;

	return line_next(text, len, &pos, &line) && number_next(&line, out);
}

bool parse_limit(const char *text, size_t len, uint64_t *out)
{
	uint64_t n;

	if (!parse_number(text, len, &n) || n >= NO_LIMIT)
		return false;
	*out = n;
	return true;
}

bool parse_cpu_max(const char *text, size_t len, uint64_t *out)
{
	struct words line;
	uint64_t quota, period, m;
	size_t pos = 0;

	if (!line_next(text, len, &pos, &line) || !number_next(&line, &quota) ||
	    !number_next(&line, &period) || !period || __builtin_mul_overflow(quota, 1000ull, &m))
		return false;
	*out = m / period;
	return true;
}

/* "total=218673172" among the words of a line. */
static bool total_of(struct words *line, uint64_t *out)
{
	const char *word;
	size_t len;

	while ((len = word_next(line, &word)))
		if (len > 6 && !memcmp(word, "total=", 6))
			return number_of(word + 6, len - 6, out);
	return false;
}

void parse_pressure(const char *text, size_t len, int some, int full, struct fact_row *out)
{
	struct words line;
	size_t pos = 0;

	while (line_next(text, len, &pos, &line)) {
		const char *word;
		size_t n = word_next(&line, &word);
		int column = n != 4                   ? -1 :
			     !memcmp(word, "some", 4) ? some :
			     !memcmp(word, "full", 4) ? full :
							-1;
		uint64_t total;

		if (column >= 0 && total_of(&line, &total))
			fact_put(out, column, total);
	}
}

void parse_stat(const char *text, size_t len, long ticks, struct fact_row *out)
{
	static const int columns[] = {HOST_USER,   HOST_NICE, HOST_SYSTEM,  HOST_IDLE,
				      HOST_IOWAIT, HOST_IRQ,  HOST_SOFTIRQ, HOST_STEAL};
	static const struct parse_key keys[] = {{"ctxt", HOST_SWITCHES, 0, 0},
						{"processes", HOST_FORKS, 0, 0},
						{"procs_running", HOST_RUNNING, 0, 0},
						{"procs_blocked", HOST_BLOCKED, 0, 0}};
	uint64_t value[8], cpus = 0;
	struct words line;
	size_t pos = 0;

	while (line_next(text, len, &pos, &line)) {
		const char *word;
		size_t n = word_next(&line, &word);

		if (n > 3 && !memcmp(word, "cpu", 3))
			cpus++;
		if (n != 3 || memcmp(word, "cpu", 3) || ticks <= 0)
			continue;
		n = numbers_next(&line, value, 8);
		for (size_t i = 0; i < n; i++)
			put_scaled(out, columns[i], value[i], USEC, (uint64_t)ticks);
	}
	if (cpus)
		fact_put(out, HOST_CPUS, cpus);
	parse_keys(text, len, keys, ARRAY_SIZE(keys), out);
}

/* "5.77" -> 5770 */
static bool thousandths(const char *word, size_t len, uint64_t *out)
{
	uint64_t whole, part = 0;
	size_t i = 0;

	if (!number_of(word, len, &whole) || whole > UINT32_MAX)
		return false;
	while (i < len && word[i] != '.')
		i++;
	for (size_t k = 0; k < 3; k++) {
		char c = i + 1 + k < len ? word[i + 1 + k] : '0';

		if (c < '0' || c > '9')
			return false;
		part = part * 10 + (uint64_t)(c - '0');
	}
	*out = whole * 1000 + part;
	return true;
}

void parse_loadavg(const char *text, size_t len, struct fact_row *out)
{
	struct words line;
	size_t pos = 0;

	if (!line_next(text, len, &pos, &line))
		return;
	for (int i = 0; i < 3; i++) {
		const char *word;
		size_t n = word_next(&line, &word);
		uint64_t m;

		if (thousandths(word, n, &m))
			fact_put(out, HOST_LOAD1 + i, m);
	}
}

bool parse_next_disk(const char *text, size_t len, size_t *pos, struct parse_disk *out)
{
	enum {
		READS,
		READ_SECTORS = 2,
		READ_MS,
		WRITES,
		WRITE_SECTORS = 6,
		WRITE_MS,
		IN_FLIGHT,
		BUSY_MS,
		WAIT_MS,
		FIELDS
	};
	struct words line;

	while (line_next(text, len, pos, &line)) {
		uint64_t major, minor, v[FIELDS];
		struct parse_disk d = {0};

		if (!number_next(&line, &major) || !number_next(&line, &minor) ||
		    major > UINT32_MAX || minor > UINT32_MAX)
			continue;
		d.name_len = word_next(&line, &d.name);
		d.major = (uint32_t)major;
		d.minor = (uint32_t)minor;
		if (!d.name_len || numbers_next(&line, v, FIELDS) != FIELDS)
			continue;
		fact_put(&d.row, DISK_READS, v[READS]);
		put_scaled(&d.row, DISK_READ_BYTES, v[READ_SECTORS], SECTOR, 1);
		put_scaled(&d.row, DISK_READ_US, v[READ_MS], 1000, 1);
		fact_put(&d.row, DISK_WRITES, v[WRITES]);
		put_scaled(&d.row, DISK_WRITE_BYTES, v[WRITE_SECTORS], SECTOR, 1);
		put_scaled(&d.row, DISK_WRITE_US, v[WRITE_MS], 1000, 1);
		fact_put(&d.row, DISK_IN_FLIGHT, v[IN_FLIGHT]);
		put_scaled(&d.row, DISK_BUSY_US, v[BUSY_MS], 1000, 1);
		put_scaled(&d.row, DISK_WAIT_US, v[WAIT_MS], 1000, 1);
		*out = d;
		return true;
	}
	return false;
}

bool parse_next_nic(const char *text, size_t len, size_t *pos, struct parse_nic *out)
{
	enum {
		RX_BYTES,
		RX_PACKETS,
		RX_ERRORS,
		RX_DROPS,
		TX_BYTES = 8,
		TX_PACKETS,
		TX_ERRORS,
		TX_DROPS,
		FIELDS
	};
	static const struct {
		int field, column;
	} parts[] = {{RX_BYTES, NIC_RX_BYTES},   {RX_PACKETS, NIC_RX_PACKETS},
		     {RX_ERRORS, NIC_RX_ERRORS}, {RX_DROPS, NIC_RX_DROPS},
		     {TX_BYTES, NIC_TX_BYTES},   {TX_PACKETS, NIC_TX_PACKETS},
		     {TX_ERRORS, NIC_TX_ERRORS}, {TX_DROPS, NIC_TX_DROPS}};
	struct words line;

	while (line_next(text, len, pos, &line)) {
		struct parse_nic d = {0};
		const char *colon;
		uint64_t v[FIELDS];

		while (line.p < line.end && is_blank(*line.p))
			line.p++;
		colon = memchr(line.p, ':', (size_t)(line.end - line.p));
		if (!colon || colon == line.p)
			continue; /* the heading has none */
		d.name = line.p;
		d.name_len = (size_t)(colon - line.p);
		line.p = colon + 1;
		if (numbers_next(&line, v, FIELDS) != FIELDS)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
			fact_put(&d.row, parts[i].column, v[parts[i].field]);
		*out = d;
		return true;
	}
	return false;
}

/* "254:0" */
static bool device_of(const char *word, size_t len, uint32_t *major, uint32_t *minor)
{
	const char *colon = memchr(word, ':', len);
	uint64_t a, b;

	if (!colon || !number_of(word, (size_t)(colon - word), &a) || a > UINT32_MAX ||
	    !number_of(colon + 1, (size_t)(word + len - colon) - 1, &b) || b > UINT32_MAX)
		return false;
	*major = (uint32_t)a;
	*minor = (uint32_t)b;
	return true;
}

/* "36 35 98:0 /root /point rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue" */
bool parse_next_mount(const char *text, size_t len, size_t *pos, struct parse_mount *out)
{
	struct words line;

	while (line_next(text, len, pos, &line)) {
		struct parse_mount m = {0};
		const char *word;
		uint64_t parent;
		size_t n;

		if (!number_next(&line, &m.id) || !number_next(&line, &parent))
			continue;
		n = word_next(&line, &word);
		if (!device_of(word, n, &m.major, &m.minor))
			continue;
		m.root_len = word_next(&line, &m.root);
		m.point_len = word_next(&line, &m.point);
		m.options_len = word_next(&line, &m.options);
		while ((n = word_next(&line, &word)) && !(n == 1 && *word == '-'))
			;
		m.type_len = word_next(&line, &m.type);
		m.source_len = word_next(&line, &m.source);
		m.super_len = word_next(
			&line, &m.super); /* a source may be empty: then it is what follows */
		if (!m.type_len || !m.point_len)
			continue;
		*out = m;
		return true;
	}
	return false;
}

bool parse_has_option(const char *list, size_t len, const char *word)
{
	size_t n = strlen(word);

	for (size_t at = 0; at < len;) {
		const char *comma = memchr(list + at, ',', len - at);
		size_t end = comma ? (size_t)(comma - list) : len;

		if (end - at == n && !memcmp(list + at, word, n))
			return true;
		at = end + 1;
	}
	return false;
}

static struct parse_io *io_of(struct parse_io *out, size_t *n, uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < *n; i++)
		if (out[i].major == major && out[i].minor == minor)
			return &out[i];
	if (*n == PARSE_IO_MAX)
		return NULL;
	out[*n] = (struct parse_io){.major = major, .minor = minor};
	return &out[(*n)++];
}

void parse_io_stat(const char *text, size_t len, struct parse_io *out, size_t *n)
{
	struct words line;
	size_t pos = 0;

	while (line_next(text, len, &pos, &line)) {
		const char *word;
		size_t word_len = word_next(&line, &word);
		uint32_t major, minor;
		struct parse_io *io;

		if (!device_of(word, word_len, &major, &minor))
			continue;
		io = io_of(out, n, major, minor);
		while (io && (word_len = word_next(&line, &word))) {
			const char *is = memchr(word, '=', word_len);
			size_t name = is ? (size_t)(is - word) : 0,
			       left = is ? word_len - name - 1 : 0;
			uint64_t v;

			if (!is || !number_of(is + 1, left, &v))
				continue;
			if (name == 6 && !memcmp(word, "rbytes", 6))
				io->read_bytes = v;
			else if (name == 6 && !memcmp(word, "wbytes", 6))
				io->write_bytes = v;
			else if (name == 4 && !memcmp(word, "rios", 4))
				io->reads = v;
			else if (name == 4 && !memcmp(word, "wios", 4))
				io->writes = v;
		}
	}
}

void parse_blkio(const char *text, size_t len, bool bytes, struct parse_io *out, size_t *n)
{
	struct words line;
	size_t pos = 0;

	while (line_next(text, len, &pos, &line)) {
		const char *word, *what;
		size_t word_len = word_next(&line, &word), what_len = word_next(&line, &what);
		bool read = what_len == 4 && !memcmp(what, "Read", 4),
		     write = what_len == 5 && !memcmp(what, "Write", 5);
		uint32_t major, minor;
		struct parse_io *io;
		uint64_t v;

		if ((!read && !write) || !device_of(word, word_len, &major, &minor) ||
		    !number_next(&line, &v))
			continue;
		io = io_of(out, n, major, minor);
		if (!io)
			continue;
		*(bytes ? read ? &io->read_bytes : &io->write_bytes :
		  read  ? &io->reads :
			  &io->writes) = v;
	}
}

bool parse_task_stat(const char *text, size_t len, long ticks, long page, struct parse_task *out)
{
	enum {
		FLAGS = 6,
		MINFLT,
		MAJFLT = 9,
		UTIME = 11,
		STIME,
		THREADS = 17,
		START = 19,
		VSIZE,
		RSS,
		FIELDS
	};
	const char *close = memrchr(text, ')', len); /* a command may have any character, ')' too */
	struct parse_task t = {0};
	uint64_t v[FIELDS] = {0};
	struct words line;

	if (!close || ticks <= 0 || page <= 0)
		return false;
	line = (struct words){close + 1, text + len};
	for (int i = 0; i < FIELDS; i++) { /* the first is the state; some may be negative */
		const char *word;
		size_t n = word_next(&line, &word);

		if (!n || (!number_of(word, n, &v[i]) && i && *word != '-'))
			return false;
	}
	put_scaled(&t.row, PROCESS_USER, v[UTIME], USEC, (uint64_t)ticks);
	put_scaled(&t.row, PROCESS_SYSTEM, v[STIME], USEC, (uint64_t)ticks);
	fact_put(&t.row, PROCESS_MINFLT, v[MINFLT]);
	fact_put(&t.row, PROCESS_MAJFLT, v[MAJFLT]);
	fact_put(&t.row, PROCESS_THREADS, v[THREADS]);
	/* a process that is ending, or a kernel thread, has no memory */
	if (v[VSIZE])
		put_scaled(&t.row, PROCESS_RSS, v[RSS], (uint64_t)page, 1);
	t.start_ticks = v[START];
	t.kernel = v[FLAGS] & TASK_KTHREAD;
	*out = t;
	return true;
}
