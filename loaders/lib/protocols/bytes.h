/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: numbers out of bytes, big and little endian. The caller has checked that they are there.
 */
#ifndef SONDE_PROTOCOLS_BYTES_H
#define SONDE_PROTOCOLS_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t be24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | be24(p + 1);
}

static inline uint64_t be64(const uint8_t *p)
{
	return (uint64_t)be32(p) << 32 | be32(p + 4);
}

static inline uint16_t le16(const uint8_t *p)
{
	return (uint16_t)(p[1] << 8 | p[0]);
}

static inline uint32_t le24(const uint8_t *p)
{
	return (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | le24(p);
}

static inline uint64_t le64(const uint8_t *p)
{
	return (uint64_t)le32(p + 4) << 32 | le32(p);
}

/* Is `word` at the start? */
static inline bool bytes_begin(const uint8_t *p, size_t n, const char *word)
{
	size_t m = strlen(word);

	return n >= m && !memcmp(p, word, m);
}

/* Does what is there so far agree with `word`, as far as both go? (Of a first piece that may be
 * short.) */
static inline bool bytes_agree(const uint8_t *p, size_t n, const char *word)
{
	size_t m = strlen(word);

	return !memcmp(p, word, n < m ? n : m);
}

static inline bool byte_is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static inline bool byte_is_letter(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The words of a line, separated by spaces and tabs; only the first BYTE_WORDS of them. */
#define BYTE_WORDS 8
struct byte_words {
	const uint8_t *p[BYTE_WORDS];
	size_t n[BYTE_WORDS], count;
};

static inline void bytes_words(const uint8_t *line, size_t n, struct byte_words *w)
{
	*w = (struct byte_words){0};
	for (size_t i = 0; i < n && w->count < BYTE_WORDS;) {
		const size_t from = i;

		while (i < n && line[i] != ' ' && line[i] != '\t')
			i++;
		if (i > from) {
			w->p[w->count] = line + from;
			w->n[w->count++] = i - from;
		}
		while (i < n && (line[i] == ' ' || line[i] == '\t'))
			i++;
	}
}

/* The line's length without its end; *whole: with it. SIZE_MAX: no line end within n bytes. */
static inline size_t bytes_line(const uint8_t *p, size_t n, size_t *whole)
{
	const uint8_t *end = memchr(p, '\n', n);

	if (!end)
		return SIZE_MAX;
	*whole = (size_t)(end - p) + 1;
	return *whole >= 2 && end[-1] == '\r' ? *whole - 2 : *whole - 1;
}

#endif
