/* SPDX-License-Identifier: Apache-2.0 */
/* layers: nothing covers anything, links lead from box to box, circles and long ways have their
 * places, and the same input is the same drawing. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/test.h"
#include "tools/net/layers.h"

#define MOST 64

struct drawing {
	struct layers_box boxes[MOST];
	struct layers_link links[MOST];
	size_t n_boxes, n_links;
	struct layers_size size;
};

static struct drawing drawn(size_t n_boxes, const size_t (*links)[2], size_t n_links)
{
	struct drawing d = {.n_boxes = n_boxes, .n_links = n_links};

	for (size_t i = 0; i < n_boxes; i++)
		d.boxes[i] = (struct layers_box){.w = 100 + (int)(i % 3) * 10, .h = 38};
	for (size_t i = 0; i < n_links; i++)
		d.links[i] = (struct layers_link){.from = links[i][0],
						  .to = links[i][1],
						  .w = 80 + (int)(i % 5),
						  .h = 14 * (1 + (int)(i % 3))};
	d.size = layers_place(d.boxes, d.n_boxes, d.links, d.n_links);
	return d;
}

static void release(struct drawing *d)
{
	layers_release(d->links, d->n_links);
}

struct area {
	int x, y, w, h;
};

static int apart(struct area a, struct area b)
{
	return a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
}

static struct area area_of(const struct drawing *d, size_t i)
{
	if (i < d->n_boxes)
		return (struct area){d->boxes[i].x, d->boxes[i].y, d->boxes[i].w, d->boxes[i].h};
	return (struct area){d->links[i - d->n_boxes].x, d->links[i - d->n_boxes].y,
			     d->links[i - d->n_boxes].w, d->links[i - d->n_boxes].h};
}

static void assert_sound(const struct drawing *d)
{
	for (size_t i = 0; i < d->n_boxes + d->n_links; i++) {
		struct area a = area_of(d, i);

		assert_true(a.x >= 0 && a.y >= 0 && a.x + a.w <= d->size.w &&
			    a.y + a.h <= d->size.h);
		for (size_t k = 0; k < i; k++)
			assert_true(apart(a, area_of(d, k)));
	}
	for (size_t i = 0; i < d->n_links; i++) {
		const struct layers_link *x = &d->links[i];
		const struct layers_box *from = &d->boxes[x->from], *to = &d->boxes[x->to];
		const struct layers_point *a = &x->points[0], *b = &x->points[x->n_points - 1];

		assert_true(x->n_points >= 4 && x->n_points % 2 == 0);
		assert_true((a->x == from->x || a->x == from->x + from->w) && a->y > from->y &&
			    a->y < from->y + from->h);
		assert_true((b->x == to->x || b->x == to->x + to->w) && b->y > to->y &&
			    b->y < to->y + to->h);
	}
}

TEST(a_chain_goes_from_left_to_right)
{
	static const size_t links[][2] = {{0, 1}, {1, 2}, {0, 2}};
	struct drawing d = drawn(3, links, 3);

	assert_sound(&d);
	assert_true(d.boxes[0].x < d.boxes[1].x && d.boxes[1].x < d.boxes[2].x);
	assert_int_equal(d.links[0].n_points, 4);
	assert_int_equal(d.links[2].n_points,
			 8); /* past the column of box 1, and of the labels behind it */
	release(&d);
}

TEST(a_circle_is_drawn_with_one_link_to_the_left)
{
	static const size_t links[][2] = {{0, 1}, {1, 2}, {2, 0}};
	struct drawing d = drawn(3, links, 3);
	int left = 0;

	assert_sound(&d);
	for (size_t i = 0; i < 3; i++)
		left += d.links[i].points[0].x > d.links[i].points[d.links[i].n_points - 1].x;
	assert_int_equal(left, 1);
	release(&d);
}

TEST(who_talks_to_itself_has_a_bow)
{
	static const size_t links[][2] = {{0, 0}, {0, 1}, {1, 1}, {1, 1}};
	struct drawing d = drawn(2, links, 4);

	assert_sound(&d);
	for (size_t i = 0; i < 4; i++)
		if (d.links[i].from == d.links[i].to) {
			const struct layers_point *end =
				&d.links[i].points[d.links[i].n_points - 1];

			assert_int_equal(end->x, d.links[i].points[0].x);
			assert_true(end->y > d.links[i].points[0].y);
		}
	release(&d);
}

TEST(who_asks_only_stands_before_whom_it_asks)
{
	static const size_t links[][2] = {{0, 1}, {1, 2}, {2, 3}, {4, 3}};
	struct drawing d = drawn(5, links, 4);

	assert_sound(&d);
	assert_int_equal(d.boxes[4].x, d.boxes[2].x);
	release(&d);
}

TEST(two_rows_that_would_cross_do_not)
{
	static const size_t links[][2] = {{0, 3}, {1, 2}};
	struct drawing d = drawn(4, links, 2);

	assert_sound(&d);
	assert_true((d.boxes[0].y < d.boxes[1].y) == (d.boxes[3].y < d.boxes[2].y));
	release(&d);
}

TEST(a_hub_is_as_high_as_its_links_need)
{
	size_t links[40][2];
	struct drawing d;

	for (size_t i = 0; i < 40; i++) {
		links[i][0] = i + 1;
		links[i][1] = 0;
	}
	d = drawn(41, (const size_t(*)[2])links, 40);
	assert_sound(&d);
	for (size_t i = 0; i < 40; i++)
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(d.links[i].points[3].y, d.links[k].points[3].y);
	release(&d);
}

TEST(any_graph_is_sound_and_the_same_again)
{
	uint64_t x = 88172645463325252ull;

	for (int round = 0; round < 200; round++) {
		size_t links[30][2], n_boxes = 1 + (size_t)round % 20, n_links = (size_t)round % 30;
		struct drawing d, again;

		for (size_t i = 0; i < n_links; i++)
			for (int end = 0; end < 2; end++) {
				x ^= x << 13;
				x ^= x >> 7;
				x ^= x << 17;
				links[i][end] = (size_t)(x >> 33) % n_boxes;
			}
		d = drawn(n_boxes, (const size_t(*)[2])links, n_links);
		again = drawn(n_boxes, (const size_t(*)[2])links, n_links);
		assert_sound(&d);
		assert_memory_equal(d.boxes, again.boxes, sizeof(d.boxes));
		for (size_t i = 0; i < n_links; i++)
			assert_memory_equal(d.links[i].points, again.links[i].points,
					    d.links[i].n_points * sizeof(*d.links[i].points));
		release(&d);
		release(&again);
	}
}

TEST(nothing_needs_no_room)
{
	struct layers_size size = layers_place(NULL, 0, NULL, 0);

	assert_int_equal(size.w, 0);
	assert_int_equal(size.h, 0);
}
