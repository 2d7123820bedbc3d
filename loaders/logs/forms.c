/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/forms.h"

#include <string.h>

#include "loaders/logs/jsonpull.h"
#include "schema/base/clock.h"

#define LOCAL_MOST (1u << 20) /* of a record; Docker's are below 64 KiB */

/* ---- time ---- */

static bool digits(const char *s, int n, int *out)
{
	*out = 0;
	for (int i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		*out = *out * 10 + (s[i] - '0');
	}
	return true;
}

/* Days since 1970 of the proleptic Gregorian calendar: years that begin in March. */
static int64_t days_of(int year, int month, int day)
{
	int y = month > 2 ? year : year - 1, era = y / 400, of = y - era * 400;
	int in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097ll + of * 365 + of / 4 - of / 100 + in_year - 719468;
}

static bool minute_of(const char *s, int64_t *out)
{
	int year, month, day, hour, minute;

	if (!digits(s, 4, &year) || s[4] != '-' || !digits(s + 5, 2, &month) || s[7] != '-' ||
	    !digits(s + 8, 2, &day) || s[10] != 'T' || !digits(s + 11, 2, &hour) || s[13] != ':' ||
	    !digits(s + 14, 2, &minute) || year < 1970 || year > 2200 || month < 1 || month > 12)
		return false;
	*out = ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 * NSEC_PER_SEC;
	return true;
}

/* "Z", "+01:00": minutes east. */
static bool zone_of(const char *s, size_t len, int *out)
{
	int hour, minute;

	*out = 0;
	if (len == 1 && (*s == 'Z' || *s == 'z'))
		return true;
	if (len != 6 || (*s != '+' && *s != '-') || !digits(s + 1, 2, &hour) || s[3] != ':' ||
	    !digits(s + 4, 2, &minute))
		return false;
	*out = (hour * 60 + minute) * (*s == '-' ? -1 : 1);
	return true;
}

int64_t forms_time(struct forms *f, const char *s, size_t len)
{
	int64_t ns, digit = NSEC_PER_SEC / 10;
	int second, zone;
	size_t at = 19;

	if (len < 20 || s[16] != ':' || !digits(s + 17, 2, &second))
		return 0;
	if (memcmp(f->minute, s, sizeof(f->minute)) != 0) {
		if (!minute_of(s, &ns))
			return 0;
		memcpy(f->minute, s, sizeof(f->minute));
		f->minute_ns = ns;
	}
	ns = f->minute_ns + second * NSEC_PER_SEC;
	if (s[at] == '.')
		for (at++; at < len && s[at] >= '0' && s[at] <= '9'; at++, digit /= 10)
			ns += (s[at] - '0') * digit;
	return zone_of(s + at, len - at, &zone) ? ns - zone * 60ll * NSEC_PER_SEC : 0;
}

/* ---- lines ---- */

/* Does the text end with a line end? That is `\n` with its backslash not escaped itself. */
static bool ends_line(struct jsonpull_text t)
{
	size_t back = 0;

	if (t.len < 2 || t.s[t.len - 1] != 'n')
		return false;
	while (back < t.len - 1 && t.s[t.len - 2 - back] == '\\')
		back++;
	return back % 2;
}

static bool docker_line(struct forms *f, const char *s, size_t len, struct log_record *out)
{
	struct jsonpull j;
	struct jsonpull_member m;
	bool found = false;

	if (!jsonpull_begin(&j, s, len))
		return false;
	while (jsonpull_next(&j, &m)) {
		if (!m.text)
			continue;
		if (jsonpull_is(m.key, "log")) {
			found = true;
			out->piece = !ends_line(m.value);
			m.value.len -= out->piece ? 0 : 2;
			out->text = m.value.s;
			out->len = m.value.len;
			if (memchr(m.value.s, '\\', m.value.len)) {
				out->text = f->text;
				out->len = jsonpull_plain(m.value, f->text, sizeof(f->text));
			}
		} else if (jsonpull_is(m.key, "stream")) {
			out->err = jsonpull_is(m.value, "stderr");
		} else if (jsonpull_is(m.key, "time")) {
			out->utc_ns = forms_time(f, m.value.s, m.value.len);
		}
	}
	return found;
}

static bool cri_line(struct forms *f, const char *s, size_t len, struct log_record *out)
{
	const char *blank = memchr(s, ' ', len), *end = s + len;

	if (!blank || end - blank < 9)
		return false;
	out->err = !memcmp(blank + 1, "stderr ", 7);
	if ((!out->err && memcmp(blank + 1, "stdout ", 7) != 0) ||
	    (blank[8] != 'F' && blank[8] != 'P'))
		return false;
	out->utc_ns = forms_time(f, s, (size_t)(blank - s));
	out->piece = blank[8] == 'P';
	out->text = end - blank > 10 ? blank + 10 : end;
	out->len = (size_t)(end - out->text);
	return out->utc_ns != 0;
}

bool forms_line(struct forms *f, enum log_form form, const char *s, size_t len,
		struct log_record *out)
{
	*out = (struct log_record){.text = s, .len = len};
	if (form == LOG_DOCKER)
		return docker_line(f, s, len, out);
	return form == LOG_CRI ? cri_line(f, s, len, out) : true;
}

/* ---- Docker's driver `local` ---- */

static uint32_t big32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

struct wire {
	const uint8_t *at, *end;
};

static bool varint(struct wire *w, uint64_t *out)
{
	*out = 0;
	for (int shift = 0; w->at < w->end && shift < 64; shift += 7) {
		uint8_t b = *w->at++;

		*out |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return true;
	}
	return false;
}

/* A field: its number, and its value, or the bytes that it has. */
static bool field(struct wire *w, uint32_t *number, uint64_t *value, struct wire *in)
{
	uint64_t tag;

	*in = (struct wire){NULL, NULL};
	if (!varint(w, &tag))
		return false;
	*number = (uint32_t)(tag >> 3);
	if ((tag & 7) == 0)
		return varint(w, value);
	if ((tag & 7) != 2 || !varint(w, value) || *value > (uint64_t)(w->end - w->at))
		return false;
	*in = (struct wire){w->at, w->at + *value};
	w->at += *value;
	return true;
}

static bool is_last_piece(struct wire w)
{
	struct wire in;
	uint32_t number;
	uint64_t value;

	while (field(&w, &number, &value, &in))
		if (number == 1)
			return value != 0;
	return false;
}

static bool local_message(struct wire w, struct log_record *out)
{
	bool last = false;
	struct wire in;
	uint32_t number;
	uint64_t value;

	*out = (struct log_record){.text = ""};
	while (w.at < w.end) {
		if (!field(&w, &number, &value, &in))
			return false;
		if (number == 1 && in.at)
			out->err = in.end - in.at == 6 && !memcmp(in.at, "stderr", 6);
		else if (number == 2 && value <= INT64_MAX)
			out->utc_ns = (int64_t)value;
		else if (number == 3 && in.at)
			out->text = (const char *)in.at, out->len = (size_t)(in.end - in.at);
		else if (number == 4)
			out->piece = value != 0;
		else if (number == 5 && in.at)
			last = is_last_piece(in);
	}
	out->piece = out->piece && !last;
	return true;
}

long forms_local(const uint8_t *p, size_t len, struct log_record *out)
{
	uint32_t size;

	if (len < 4)
		return 0;
	size = big32(p);
	if (size > LOCAL_MOST)
		return -1;
	if (len < 8 + (size_t)size)
		return 0;
	if (big32(p + 4 + size) != size || !local_message((struct wire){p + 4, p + 4 + size}, out))
		return -1;
	return (long)size + 8;
}
