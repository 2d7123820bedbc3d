/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/pprof_legacy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 128
#define WORDS          5

static uint64_t word(const unsigned char *at, size_t size, bool big)
{
	uint64_t v = 0;

	for (size_t i = 0; i < size; i++)
		v = v << 8 | at[big ? i : size - 1 - i];
	return v;
}

static bool is_binary(const unsigned char *data, size_t len)
{
	for (size_t size = 4; size <= 8; size += 4)
		for (int big = 0; big < 2 && len >= WORDS * size; big++) {
			uint64_t w[WORDS];

			for (size_t i = 0; i < WORDS; i++)
				w[i] = word(data + i * size, size, big);
			if (!w[0] && w[1] >= 3 && w[1] < 64 && w[2] <= 1 && w[3] &&
			    w[3] <= 1000000000 && !w[4])
				return true;
		}
	return false;
}

static bool begins(const char *line, const char *with)
{
	return !strncmp(line, with, strlen(with));
}

static bool is_text(const char *line)
{
	char name[LINE_MAX_BYTES], mark;
	unsigned total;
	int end = 0;

	if (begins(line, "heap profile:") ||
	    sscanf(line, "%127[A-Za-z0-9_./-] profile: total %u", name, &total) == 2)
		return true;
	if (sscanf(line, "--- %127[a-z] %u ---%n", name, &total, &end) == 2 && end)
		return true;
	return sscanf(line, "--- %127[a-z]%c", name, &mark) == 2 &&
	       (mark == ':' || mark == '\n' || mark == '\r');
}

static bool is_dump(const char *line)
{
	unsigned id;
	char state;

	return sscanf(line, "goroutine %u [%c", &id, &state) == 2;
}

int pprof_legacy_refuse(const void *data, size_t len, const char *path, struct err *e)
{
	const bool binary = is_binary(data, len);
	char line[LINE_MAX_BYTES] = "";

	if (!binary)
		memcpy(line, data, len < sizeof(line) ? len : sizeof(line) - 1);
	if (is_dump(line)) {
		err_set(e, -ENOTSUP, EXIT_USAGE,
			"%.300s is a text dump of goroutines (debug=2), not a profile", path);
		err_fix(e, "fetch it with debug=0 and import that");
		return -ENOTSUP;
	}
	if (!binary && !is_text(line))
		return 0;
	err_set(e, -ENOTSUP, EXIT_USAGE, "%.300s is a profile in an old %s form of pprof%s", path,
		binary ? "binary" : "text", binary ? "" : " (debug=1 of Go writes it)");
	err_fix(e,
		"go tool pprof -proto -output new.pb.gz PROGRAM %.150s && sonde import new.pb.gz",
		path);
	return -ENOTSUP;
}
