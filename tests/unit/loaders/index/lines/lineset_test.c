/* SPDX-License-Identifier: Apache-2.0 */
/* lineset, linecode, linepaint and the reader of lines: what goes in comes out, compared with a
 * model that marks each address. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/compose.h"
#include "schema/image/image.h"
#include "schema/image/lines.h"
#include "tests/unit/test.h"

#define BASE 0x401000ull

static struct elf_range code[] = {{BASE, BASE + 0x1000}, {BASE + 0x2000, BASE + 0x3000}};

/* The index of these lines alone; the bytes are the caller's. */
static struct image *compose(struct lineset *lines, const char *note, void **bytes)
{
	struct image_ident_record ident = {0};
	struct elf_file elf = {0};
	struct symset set;
	struct elf_range *own = malloc(sizeof(code));
	struct image *img = NULL;
	size_t len = 0, symbols = 0;

	memcpy(own, code, sizeof(code));
	symset_init(&set, own, 2);
	assert_int_equal(compose_index(&(struct compose_input){.elf = &elf,
							       .ident = &ident,
							       .set = &set,
							       .lines = lines,
							       .lines_note = note},
				       bytes, &len, &symbols),
			 0);
	assert_int_equal(image_open_bytes(*bytes, len, &img, NULL), 0);
	symset_release(&set);
	return img;
}

static void assert_frame(const struct image_source_frame *f, const char *function, const char *file,
			 uint32_t line, uint32_t column)
{
	assert_int_equal(f->inlined, function != NULL);
	assert_true(!f->function == !function && !f->file == !file);
	if (function)
		assert_string_equal(f->function, function);
	if (file)
		assert_string_equal(f->file, file);
	assert_int_equal(f->line, line);
	assert_int_equal(f->column, column);
}

TEST(lines_and_inlined_functions_come_back_innermost_first)
{
	struct image_source_frame f[8];
	struct lineset s;
	struct image *img;
	void *bytes = NULL;
	uint32_t a, b, outer, inner;

	lineset_init(&s, code, 2);
	a = lineset_file(&s, "/src/a.c");
	b = lineset_file(&s, "/src/b.h");
	assert_int_equal(lineset_file(&s, "/src/a.c"), a);
	lineset_row(&s, BASE + 0x10, a, 7, 1);
	lineset_row(&s, BASE + 0x14, b, 100, 3);
	lineset_row(&s, BASE + 0x20, b, 0, 0);
	lineset_end(&s, BASE + 0x30);
	outer = lineset_inline(&s,
			       &(struct lineset_call){.name = lineset_name(&s, "_Z5outeri", true),
						      .file = a,
						      .line = 8,
						      .column = 2});
	inner = lineset_inline(&s,
			       &(struct lineset_call){.parent = outer,
						      .name = lineset_name(&s, "_Z5inneri", false),
						      .file = b,
						      .line = 90});
	lineset_range(&s, outer, BASE + 0x14, BASE + 0x30);
	lineset_range(&s, inner, BASE + 0x14, BASE + 0x18);
	img = compose(&s, "because", &bytes);

	assert_true(image_has_lines(img));
	assert_string_equal(image_lines_note(img), "because");
	assert_int_equal(image_lines_at(img, BASE + 0xf, f, 8), 0);
	assert_int_equal(image_lines_at(img, BASE + 0x13, f, 8), 1);
	assert_frame(&f[0], NULL, "/src/a.c", 7, 1);
	assert_int_equal(image_lines_at(img, BASE + 0x17, f, 8), 3);
	assert_frame(&f[0], "_Z5inneri", "/src/b.h", 100, 3);
	assert_frame(&f[1], "outer(int)", "/src/b.h", 90, 0);
	assert_frame(&f[2], NULL, "/src/a.c", 8, 2);
	assert_int_equal(image_lines_at(img, BASE + 0x17, f, 1), 1);
	assert_frame(&f[0], "_Z5inneri", "/src/b.h", 100, 3);
	assert_int_equal(image_lines_at(img, BASE + 0x17, f, 0), 0);
	assert_int_equal(image_lines_at(img, BASE + 0x2f, f, 8), 2);
	assert_frame(&f[0], "outer(int)", "/src/b.h", 0, 0);
	assert_int_equal(image_lines_at(img, BASE + 0x30, f, 8), 0);
	assert_int_equal(image_lines_at(img, 0, f, 8), 0);
	assert_int_equal(image_lines_at(img, UINT64_MAX, f, 8), 0);
	assert_int_equal(image_function_line(img, BASE + 0x10), 7);
	assert_int_equal(image_function_line(img, BASE + 0x14), 8);
	image_close(img);
	free(bytes);
	lineset_release(&s);
}

TEST(an_index_without_lines_says_so)
{
	struct image_source_frame f[2];
	struct lineset s;
	struct image *img;
	void *bytes = NULL;

	lineset_init(&s, code, 2);
	img = compose(&s, NULL, &bytes);
	assert_false(image_has_lines(img));
	assert_null(image_lines_note(img));
	assert_int_equal(image_lines_at(img, BASE, f, 2), 0);
	assert_int_equal(image_function_line(img, BASE), 0);
	image_close(img);
	free(bytes);
	lineset_release(&s);
}

TEST(what_lies_outside_of_the_code_is_left_out)
{
	struct image_source_frame f[2];
	struct lineset s;
	struct image *img;
	void *bytes = NULL;
	uint32_t a;

	lineset_init(&s, code, 2);
	a = lineset_file(&s, "a.c");
	/* a dropped function that seems to reach into the code */
	lineset_row(&s, 0, a, 1, 0);
	lineset_row(&s, BASE + 0x10, a, 2, 0);
	lineset_end(&s, BASE + 0x20);
	/* one that goes on behind the code, one whose addresses fall, one without an end */
	lineset_row(&s, BASE + 0xff0, a, 3, 0);
	lineset_end(&s, BASE + 0x2010);
	lineset_row(&s, BASE + 0x2100, a, 4, 0);
	lineset_row(&s, BASE + 0x2000, a, 5, 0);
	lineset_end(&s, BASE + 0x2110);
	lineset_row(&s, BASE + 0x2200, a, 6, 0);
	assert_int_equal(lineset_status(&s), 0);
	img = compose(&s, NULL, &bytes);
	assert_int_equal(image_lines_at(img, BASE + 0x10, f, 2), 0);
	assert_int_equal(image_lines_at(img, BASE + 0xfff, f, 2), 1);
	assert_int_equal(image_lines_at(img, BASE + 0x1000, f, 2), 0);
	assert_int_equal(image_lines_at(img, BASE + 0x2000, f, 2), 0);
	assert_int_equal(image_lines_at(img, BASE + 0x210f, f, 2), 1);
	assert_int_equal(f[0].line, 4);
	assert_int_equal(image_lines_at(img, BASE + 0x2200, f, 2), 0);
	image_close(img);
	free(bytes);
	lineset_release(&s);
}

TEST(too_deep_a_chain_ends_at_the_limit)
{
	struct image_source_frame f[IMAGE_INLINE_DEPTH_MAX + 8];
	uint32_t node = 0;
	struct lineset s;
	struct image *img;
	void *bytes = NULL;
	char name[16];

	lineset_init(&s, code, 2);
	for (uint32_t i = 0; i < IMAGE_INLINE_DEPTH_MAX + 5; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		node = lineset_inline(&s,
				      &(struct lineset_call){.parent = node,
							     .name = lineset_name(&s, name, false),
							     .line = i});
		lineset_range(&s, node, BASE + i, BASE + 0x100 - i);
	}
	img = compose(&s, NULL, &bytes);
	assert_int_equal(image_lines_at(img, BASE + 0x80, f, IMAGE_INLINE_DEPTH_MAX + 8),
			 IMAGE_INLINE_DEPTH_MAX + 1);
	assert_string_equal(f[0].function, "f63");
	assert_string_equal(f[IMAGE_INLINE_DEPTH_MAX - 1].function, "f0");
	image_close(img);
	free(bytes);
	lineset_release(&s);
}

/* ---- against a model ---- */

#define SPAN 0x1000u

struct model {
	uint32_t line[SPAN], node[SPAN]; /* line 0: nothing known */
	uint32_t parent[4096], call[4096];
};

static uint32_t below(uint32_t n)
{
	return (uint32_t)random() % n;
}

/* Sequences that do not overlap, added in any order, with gaps and with several rows at one
 * address. */
static void tell_lines(struct lineset *s, struct model *m, const uint32_t *files)
{
	for (uint32_t i = 0, start = below(40); i < 40 && start + 60 < SPAN; i++) {
		uint32_t at = start, line = 1 + below(100000), end;

		for (int n = (int)below(30); n >= 0 && at < start + 50; n--) {
			line = below(3) ? line + below(9) : 1 + below(1u << (1 + below(31)));
			lineset_row(s, BASE + at, files[line % 200], line, line % 90);
			for (uint32_t k = at; k < start + 55; k++)
				m->line[k] = line;
			at += below(20);
		}
		end = start + 55;
		lineset_end(s, BASE + end);
		start = end + below(3) * below(200);
	}
}

static uint32_t tell_inlines(struct lineset *s, struct model *m)
{
	uint32_t count = 1;

	for (; count < 600; count++) {
		const uint32_t parent = below(4) ? 0 : below(count);
		const uint32_t lo = below(SPAN), hi = lo + below(300) + 1;
		uint32_t node;
		char name[16];

		m->parent[count] = parent;
		m->call[count] = 1 + below(1u << (1 + below(31)));
		snprintf(name, sizeof(name), "f%u", count);
		node = lineset_inline(s,
				      &(struct lineset_call){.parent = parent,
							     .name = lineset_name(s, name, false),
							     .line = m->call[count]});
		assert_int_equal(node, count);
		lineset_range(s, node, BASE + lo, BASE + hi);
		for (uint32_t k = lo; k < hi && k < SPAN; k++)
			m->node[k] = node;
		if (below(20) == 0) {
			lineset_range(s, 0, BASE + lo, BASE + lo + 5);
			for (uint32_t k = lo; k < lo + 5 && k < SPAN; k++)
				m->node[k] = 0;
		}
	}
	return count;
}

static void compare(const struct image *img, const struct model *m, uint32_t at)
{
	struct image_source_frame f[IMAGE_INLINE_DEPTH_MAX + 1];
	size_t n = image_lines_at(img, BASE + at, f, IMAGE_INLINE_DEPTH_MAX + 1), i = 0;
	uint32_t line = m->line[at];
	char name[32];

	assert_int_equal(n > 0, line || m->node[at]);
	for (uint32_t node = m->node[at]; n && node; node = m->parent[node], i++) {
		snprintf(name, sizeof(name), "f%u", node);
		assert_true(i < n);
		assert_string_equal(f[i].function, name);
		assert_int_equal(f[i].line, line);
		line = m->call[node];
	}
	if (!n)
		return;
	assert_int_equal(i + 1, n);
	assert_false(f[i].inlined);
	assert_int_equal(f[i].line, line);
	if (!m->node[at]) {
		snprintf(name, sizeof(name), "/f%u.c", line % 200);
		assert_string_equal(f[0].file, name);
		assert_int_equal(f[0].column, line % 90);
	}
}

TEST(whatever_was_told_comes_back_as_a_model_paints_it)
{
	srandom(7);
	for (int round = 0; round < 40; round++) {
		struct model *m = calloc(1, sizeof(*m));
		struct lineset s;
		struct image *img;
		void *bytes = NULL;
		uint32_t files[200];
		char name[16];

		lineset_init(&s, code, 2);
		for (uint32_t i = 0; i < 200; i++) {
			snprintf(name, sizeof(name), "/f%u.c", i);
			files[i] = lineset_file(&s, name);
		}
		tell_lines(&s, m, files);
		tell_inlines(&s, m);
		img = compose(&s, NULL, &bytes);
		for (uint32_t at = 0; at < SPAN; at++)
			compare(img, m, at);
		image_close(img);
		free(bytes);
		lineset_release(&s);
		free(m);
	}
}
