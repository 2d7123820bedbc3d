/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/proc/proc.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define PRESENT     (1ull << 63)
#define SWAPPED     (1ull << 62)
#define NOT_OWN     (1ull << 61)
#define FRAME       ((1ull << 55) - 1)
#define KPF_HEAD    (1ull << 15)
#define KPF_TAIL    (1ull << 16)
#define KPF_HUGE    (1ull << 17)
#define KPF_THP     (1ull << 22)
#define STATUS_MAX  8192
#define FRAMES_BITS 36
/* a read of 512 entries costs as much as some thirty reads of one: 25 us and 0.85 us */
#define TOGETHER 512
#define WORTH    32

int pages_open(uint32_t tgid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/pagemap", tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static uint64_t entry_read(int fd, uint64_t page)
{
	uint64_t entry = 0;

	if (pread(fd, &entry, sizeof(entry), (off_t)(page * sizeof(entry))) != sizeof(entry))
		return 0;
	return entry;
}

enum pages_state pages_state(uint64_t said)
{
	if (!(said & (PRESENT | SWAPPED)))
		return PAGES_GONE;
	return said & NOT_OWN ? PAGES_OTHER : PAGES_OWN;
}

uint64_t pages_frame(uint64_t said)
{
	return said & PRESENT ? said & FRAME : 0;
}

uint64_t pages_ask(int fd, uint64_t page)
{
	return entry_read(fd, page);
}

/* Opened once: it is the host's. */
static int frames_fd(void)
{
	static int fd = -2;

	if (fd == -2)
		fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	return fd;
}

bool pages_tell_frames(void)
{
	volatile char touched = 1; /* of this stack */
	int fd = pages_open((uint32_t)getpid());
	uint64_t frame;

	if (fd < 0)
		return false;
	frame = pages_frame(pages_ask(fd, (uint64_t)(uintptr_t)&touched / 4096));
	close(fd);
	return frame && frames_fd() >= 0;
}

uint64_t pages_flags(uint64_t frame)
{
	return frames_fd() < 0 ? 0 : entry_read(frames_fd(), frame);
}

/* Reading beyond the last one gives nothing. */
uint64_t pages_frames(void)
{
	uint64_t least = 0, most = 1ull << FRAMES_BITS, entry;

	if (frames_fd() < 0)
		return 0;
	while (least < most) {
		uint64_t at = least + (most - least) / 2;

		if (pread(frames_fd(), &entry, sizeof(entry), (off_t)(at * sizeof(entry))) > 0)
			least = at + 1;
		else
			most = at;
	}
	return least;
}

uint32_t pages_size_in(const uint64_t flags[PAGES_HUGE], size_t at)
{
	size_t first = at, end = at + 1;

	if (!(flags[at] & (KPF_HUGE | KPF_THP)))
		return 1;
	while (first && flags[first] & KPF_TAIL)
		first--;
	while (end < PAGES_HUGE && flags[end] & KPF_TAIL)
		end++;
	return (uint32_t)(end - first);
}

uint32_t pages_size(uint64_t said)
{
	uint64_t frame = pages_frame(said), flags[PAGES_HUGE] = {0}, first;

	if (!frame || pages_state(said) != PAGES_OWN || frames_fd() < 0 ||
	    !(entry_read(frames_fd(), frame) & (KPF_HUGE | KPF_THP)))
		return 1;
	first = frame / PAGES_HUGE * PAGES_HUGE;
	if (pread(frames_fd(), flags, sizeof(flags), (off_t)(first * sizeof(*flags))) !=
	    sizeof(flags))
		return 1;
	return pages_size_in(flags, frame - first);
}

/* How many of the next pages lie within one reading. */
static size_t near(const uint64_t *pages, size_t n)
{
	size_t k = 1;

	while (k < n && pages[k] - pages[0] < TOGETHER)
		k++;
	return k;
}

static void ask_together(int fd, const uint64_t *pages, size_t n, uint64_t *said)
{
	uint64_t entries[TOGETHER] = {0};
	size_t span = (size_t)(pages[n - 1] - pages[0]) + 1;
	ssize_t got =
		pread(fd, entries, span * sizeof(*entries), (off_t)(pages[0] * sizeof(*entries)));

	for (size_t i = 0; i < n; i++) {
		size_t at = (size_t)(pages[i] - pages[0]);

		said[i] = (at + 1) * sizeof(*entries) <= (size_t)(got < 0 ? 0 : got) ? entries[at] :
										       0;
	}
}

void pages_ask_all(int fd, const uint64_t *pages, size_t n, uint64_t *said)
{
	for (size_t i = 0; i < n;) {
		size_t k = near(pages + i, n - i);

		if (k < WORTH) {
			said[i] = pages_ask(fd, pages[i]);
			i++;
			continue;
		}
		ask_together(fd, pages + i, k, said + i);
		i += k;
	}
}

static bool kib_of(const char *data, const char *key, uint64_t *bytes)
{
	const char *at = strstr(data, key);
	unsigned long long kib;

	if (!at || sscanf(at + strlen(key), "%llu kB", &kib) != 1 || kib > UINT64_MAX / 1024)
		return false;
	*bytes = kib * 1024;
	return true;
}

int pages_usage_parse(const char *data, size_t len, struct pages_usage *out)
{
	cleanup_free char *text = strndup(data, len);
	struct pages_usage u = {0};

	if (!text || !kib_of(text, "\nRssAnon:", &u.own))
		return -EBADMSG;
	kib_of(text, "\nVmSwap:", &u.swap);
	*out = u;
	return 0;
}

int pages_usage(uint32_t tgid, struct pages_usage *out)
{
	cleanup_free char *data = NULL;
	size_t len;
	int err = proc_read(tgid, "status", STATUS_MAX, &data, &len);

	return err ? err : pages_usage_parse(data, len, out);
}

uint64_t pages_huge(uint32_t tgid)
{
	cleanup_free char *data = NULL;
	uint64_t bytes = 0;
	size_t len;

	if (proc_read(tgid, "smaps_rollup", STATUS_MAX, &data, &len) ||
	    !kib_of(data, "\nAnonHugePages:", &bytes))
		return 0;
	return bytes;
}

uint64_t pages_used_parse(const char *data, size_t len)
{
	cleanup_free char *text = mem_alloc(len + 2);
	uint64_t all, free_bytes;

	text[0] = '\n'; /* each key follows one */
	memcpy(text + 1, data, len);
	if (!kib_of(text, "\nMemTotal:", &all) || !kib_of(text, "\nMemFree:", &free_bytes) ||
	    free_bytes > all)
		return 0;
	return all - free_bytes;
}

uint64_t pages_used(void)
{
	char text[STATUS_MAX];
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	return n < 0 ? 0 : pages_used_parse(text, (size_t)n);
}

uint64_t pages_own(uint32_t tgid)
{
	cleanup_free char *data = NULL;
	unsigned long long all, resident, shared;
	size_t len;

	if (proc_read(tgid, "statm", STATUS_MAX, &data, &len) ||
	    sscanf(data, "%llu %llu %llu", &all, &resident, &shared) != 3 || resident < shared)
		return 0;
	return (resident - shared) * 4096;
}
