/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goheap_read: for the tests: what buckets.h reads of a live process, as JSON.
 *
 *     goheap_read PID INDEX    one collection for each line of standard input, one line of JSON
 *                              each
 *
 * INDEX is the image index of the process's program. Besides the values, each bucket's frames as
 * the index names them, by the rules that buckets.h gives for each kind.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loaders/goheap/buckets.h"
#include "loaders/goheap/bucketsmem.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/image/go.h"
#include "schema/image/image.h"
#include "schema/image/lines.h"

#define FRAMES 65

struct reader {
	const struct image *image;
	uint64_t bias;
	bool any;
};

/* Address at which the program's first segment is mapped, minus its address in the file. */
static int bias_find(int pid, const struct image *image, uint64_t *bias)
{
	char exe[4096];
	struct image_exec exec[16];
	struct proc_map map;
	uint64_t vaddr;
	char *maps;
	size_t len, pos = 0, n = image_exec_segments(image, exec, 16);

	if (proc_readlink((uint32_t)pid, "exe", exe, sizeof(exe)) ||
	    proc_read((uint32_t)pid, "maps", PROC_FILE_MAX, &maps, &len))
		return -1;
	while (proc_next_map(maps, len, &pos, &map))
		if (map.exec && map.path_len == strlen(exe) &&
		    !memcmp(map.path, exe, map.path_len) &&
		    image_exec_vaddr(exec, n, map.offset, map.end - map.start, &vaddr)) {
			*bias = map.start - vaddr;
			free(maps);
			return 0;
		}
	free(maps);
	return -1;
}

static void print_string(const char *s)
{
	putchar('"');
	for (; s && *s; s++)
		if (*s == '"' || *s == '\\' || (unsigned char)*s < ' ')
			printf("\\u%04x", (unsigned char)*s);
		else
			putchar(*s);
	putchar('"');
}

static const char *frame_name(const struct image *image, uint64_t vaddr,
			      const struct image_source_frame *f)
{
	struct image_symbol s;

	return f->function ? f->function : image_symbol_at(image, vaddr, &s) ? s.name : NULL;
}

/* Are the frames around the call inlined at `a` (its frames 1...) the frames at `b`? */
static bool same_outer(const struct image_source_frame *a, size_t n,
		       const struct image_source_frame *b, size_t m)
{
	if (n != m + 1)
		return false;
	for (size_t i = 0; i < m; i++)
		if (!a[i + 1].function != !b[i].function ||
		    (b[i].function && strcmp(a[i + 1].function, b[i].function)) ||
		    a[i + 1].line != b[i].line)
			return false;
	return true;
}

static void print_frames(const struct reader *r, const struct bucket *b)
{
	struct image_source_frame at[FRAMES], outer[FRAMES];
	const char *comma = "";

	printf(",\"frames\":[");
	for (uint32_t i = 0; i < b->depth; i++) {
		const uint64_t vaddr = b->pcs[i] - r->bias - 1;
		size_t n = image_lines_at(r->image, vaddr, at, FRAMES), m = 0;

		if (n > 1 && i + 1 < b->depth)
			m = image_lines_at(r->image, b->pcs[i + 1] - r->bias - 1, outer, FRAMES);
		if (n > 1 && (b->kind == BUCKETS_MEMORY || same_outer(at, n, outer, m)))
			n = 1;
		for (size_t k = 0; k < n; k++, comma = ",") {
			printf("%s[", comma);
			print_string(frame_name(r->image, vaddr, &at[k]));
			printf(",\"%s\",%u]", at[k].file ? at[k].file : "", at[k].line);
		}
	}
	putchar(']');
}

static void print_amounts(const char *name, const struct bucket_amounts *a)
{
	printf(",\"%s\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", name, a->allocs,
	       a->frees, a->alloc_bytes, a->free_bytes);
}

static int each(void *ctx, const struct bucket *b)
{
	struct reader *r = ctx;
	struct bucket_amounts published = bucket_published(b), pending = bucket_pending(b);

	printf("%s{\"index\":%u,\"fresh\":%d,\"kind\":%d,\"addr\":%" PRIu64 ",\"size\":%" PRIu64
	       ",\"pcs\":[",
	       r->any ? ",\n" : "", b->index, b->fresh, b->kind, b->addr, b->size);
	r->any = true;
	for (uint32_t i = 0; i < b->depth; i++)
		printf("%s%" PRIu64, i ? "," : "", b->pcs[i]);
	putchar(']');
	if (b->kind == BUCKETS_MEMORY) {
		print_amounts("published", &published);
		print_amounts("pending", &pending);
	} else {
		printf(",\"count\":%.17g,\"ticks\":%" PRId64, b->count, b->ticks);
	}
	if (!getenv("NO_FRAMES"))
		print_frames(r, b);
	putchar('}');
	return 0;
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int quiet(void *ctx, const struct bucket *b)
{
	(void)ctx;
	(void)b;
	return 0;
}

static void collect(struct buckets *b, struct reader *r)
{
	struct buckets_sum s;
	double before;

	r->any = false;
	printf("{\"buckets\":[");
	before = cpu_ms();
	if (buckets_collect(b, getenv("QUIET") ? quiet : each, r, &s))
		exit(1);
	printf("],\"cpu_ms\":%.3f,\"states\":[%d,%d,%d,%d],\"text\":\"%s\",\"counts\":[%u,%u,%u]",
	       cpu_ms() - before, s.state[0], s.state[1], s.state[2], s.state[3],
	       buckets_state_text(s.state[s.state[0] ? 0 : 1]), s.count[1], s.count[2], s.count[3]);
	printf(",\"cycles\":[%u,%u]", s.cycle_first >> 1, s.cycle_last >> 1);
	printf(",\"fresh\":%u,\"torn\":%u,\"dropped\":%u,\"nothing_published\":%d,\"cycle_known\":%d",
	       s.fresh, s.torn, s.dropped, s.nothing_published, s.cycle_known);
	printf(",\"searched\":%d,\"rate\":%" PRId64
	       ",\"ticks_per_second\":%.17g,\"reads\":%u,\"read_bytes\":%" PRIu64 "}\n",
	       s.found_by_search, s.mem_rate_known ? s.mem_rate : -1, s.ticks_per_second, s.reads,
	       s.read_bytes);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct image *image;
	struct reader r = {0};
	struct image_go_record go;
	struct buckets_layout layout;
	struct bucketsmem mem;
	struct buckets_memory memory;
	struct err e;
	struct buckets *b;
	char line[64];

	if (argc != 3 || image_open_fd(open(argv[2], O_RDONLY | O_CLOEXEC), &image, &e) ||
	    !image_go(image, &go) || bias_find(atoi(argv[1]), image, &r.bias) ||
	    !buckets_layout_make(&go, r.bias, &layout)) {
		fprintf(stderr, "goheap_read: no Go index, or no such process\n");
		return 1;
	}
	r.image = image;
	memory = bucketsmem_init(&mem, atoi(argv[1]));
	b = buckets_open(&layout, &memory);
	while (fgets(line, sizeof(line), stdin))
		collect(b, &r);
	buckets_close(b);
	image_close(image);
	return 0;
}
