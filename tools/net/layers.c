/* SPDX-License-Identifier: Apache-2.0 */
/* layers: the numbers at the parts are those of the header. */
#include "tools/net/layers.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define SIDE_GAP     26 /* between columns */
#define PORT         11 /* between links at a box's side, at least */
#define BELOW        4  /* of a label's place, below the line */
#define BOW          9  /* between the ways of a bow */
#define PLACE_ROUNDS 24

struct item { /* a box, a label, or a thread */
	int layer, w, h;
	int level;    /* from its top to where links are joined */
	double y;     /* its top */
	size_t place; /* within its layer */
	double wish;
};

struct joint { /* two items of neighbouring layers, left and right */
	size_t a, b;
};

struct graph {
	struct layers_box *boxes;
	size_t n_boxes;
	struct layers_link *links;
	size_t n_links;
	bool *turned; /* by link */
	int *column;  /* by box */
	struct item *items;
	size_t n_items, cap_items;
	struct joint *joints;
	size_t n_joints, cap_joints;
	size_t *first_item, *n_chain; /* by link: its items between the boxes, from left to right */
	size_t **order, *n_order;     /* by layer: items from top to bottom */
	int n_layers;
};

/* The box where a link begins and ends in the drawing, from left to right. */
static size_t left_of(const struct graph *g, size_t link)
{
	return g->turned[link] ? g->links[link].to : g->links[link].from;
}

static size_t right_of(const struct graph *g, size_t link)
{
	return g->turned[link] ? g->links[link].from : g->links[link].to;
}

static bool is_bow(const struct layers_link *x)
{
	return x->from == x->to;
}

/* --- 1: no circles --- */

enum { UNSEEN, ON_PATH, DONE };

/* A search in depth without recursion: `next` is the next link to look at of each box on the path.
 */
static void search(struct graph *g, size_t root, uint8_t *state, size_t *path, size_t *next)
{
	size_t depth = 1;

	path[0] = root;
	state[root] = ON_PATH;
	while (depth) {
		size_t box = path[depth - 1], i = next[box]++;

		if (i == g->n_links) {
			state[box] = DONE;
			depth--;
		} else if (g->links[i].from == box && !is_bow(&g->links[i])) {
			size_t to = g->links[i].to;

			g->turned[i] = state[to] == ON_PATH;
			if (state[to] == UNSEEN) {
				state[to] = ON_PATH;
				path[depth++] = to;
			}
		}
	}
}

static void turn_circles(struct graph *g)
{
	cleanup_free uint8_t *state = mem_array(g->n_boxes + 1, 1),
			     *reached = mem_array(g->n_boxes + 1, 1);
	cleanup_free size_t *path = mem_array(g->n_boxes + 1, sizeof(*path)),
			    *next = mem_array(g->n_boxes + 1, sizeof(*next));

	for (size_t i = 0; i < g->n_links; i++)
		reached[g->links[i].to] |= !is_bow(&g->links[i]);
	for (int all = 0; all < 2; all++) /* first from those that no box asks */
		for (size_t i = 0; i < g->n_boxes; i++)
			if (state[i] == UNSEEN && (all || !reached[i]))
				search(g, i, state, path, next);
}

/* --- 2: columns --- */

static void columns(struct graph *g)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (size_t i = 0; i < g->n_links; i++) {
			size_t a = left_of(g, i), b = right_of(g, i);

			if (a != b && g->column[b] <= g->column[a]) {
				g->column[b] = g->column[a] + 1;
				moved = true;
			}
		}
	}
	for (size_t box = 0; box < g->n_boxes; box++) {
		int nearest = 0;
		bool asked = false;

		for (size_t i = 0; i < g->n_links; i++) {
			asked = asked || (right_of(g, i) == box && left_of(g, i) != box);
			if (left_of(g, i) == box && right_of(g, i) != box &&
			    (!nearest || g->column[right_of(g, i)] < nearest))
				nearest = g->column[right_of(g, i)];
		}
		if (!asked && nearest)
			g->column[box] = nearest - 1;
	}
}

/* --- 3: labels and threads --- */

static size_t item_add(struct graph *g, int layer, int w, int h, int level)
{
	mem_grow(g->items, g->n_items, g->cap_items);
	g->items[g->n_items] = (struct item){.layer = layer, .w = w, .h = h, .level = level};
	if (layer >= g->n_layers)
		g->n_layers = layer + 1;
	return g->n_items++;
}

static void joint_add(struct graph *g, size_t a, size_t b)
{
	mem_grow(g->joints, g->n_joints, g->cap_joints);
	g->joints[g->n_joints++] = (struct joint){a, b};
}

static void chain_add(struct graph *g, size_t i)
{
	const struct layers_link *x = &g->links[i];
	size_t at = left_of(g, i), end = right_of(g, i);
	int from = 2 * g->column[at] + 1, to = 2 * g->column[end];

	g->first_item[i] = g->n_items;
	for (int layer = from; layer < to || layer == from; layer++) {
		bool label = layer == from;
		size_t item = label ? item_add(g, layer, x->w, x->h + BELOW + (is_bow(x) ? BOW : 0),
					       x->h) :
				      item_add(g, layer, 0, 2, 1);

		joint_add(g, at, item);
		at = item;
	}
	g->n_chain[i] = g->n_items - g->first_item[i];
	if (!is_bow(x))
		joint_add(g, at, end);
}

static void ports(struct graph *g)
{
	for (size_t box = 0; box < g->n_boxes; box++) {
		int in = 0, out = 0;

		for (size_t i = 0; i < g->n_links; i++) {
			out += left_of(g, i) == box ? 1 + is_bow(&g->links[i]) : 0;
			in += right_of(g, i) == box && !is_bow(&g->links[i]);
		}
		if ((in > out ? in : out) * PORT + PORT > g->boxes[box].h)
			g->boxes[box].h = (in > out ? in : out) * PORT + PORT;
	}
}

static void items_make(struct graph *g)
{
	ports(g);
	for (size_t i = 0; i < g->n_boxes; i++)
		item_add(g, 2 * g->column[i], g->boxes[i].w, g->boxes[i].h, g->boxes[i].h / 2);
	for (size_t i = 0; i < g->n_links; i++)
		chain_add(g, i);
	g->order = mem_array((size_t)g->n_layers + 1, sizeof(*g->order));
	g->n_order = mem_array((size_t)g->n_layers + 1, sizeof(*g->n_order));
	for (int layer = 0; layer < g->n_layers; layer++)
		g->order[layer] = mem_array(g->n_items + 1, sizeof(**g->order));
	for (size_t i = 0; i < g->n_items; i++) {
		int layer = g->items[i].layer;

		g->items[i].place = g->n_order[layer];
		g->order[layer][g->n_order[layer]++] = i;
	}
}

/* --- 4: order --- */

static size_t crossings(const struct graph *g)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n_joints; i++)
		for (size_t k = i + 1; k < g->n_joints; k++) {
			const struct item *a = &g->items[g->joints[i].a],
					  *b = &g->items[g->joints[i].b];
			const struct item *c = &g->items[g->joints[k].a],
					  *d = &g->items[g->joints[k].b];

			n += a->layer == c->layer && a->place != c->place && b->place != d->place &&
			     (a->place < c->place) != (b->place < d->place);
		}
	return n;
}

static const struct graph *sorted; /* qsort has no context */

static int by_wish(const void *a, const void *b)
{
	const struct item *x = &sorted->items[*(const size_t *)a],
			  *y = &sorted->items[*(const size_t *)b];

	if (x->wish != y->wish)
		return x->wish < y->wish ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

/* What each of a layer wishes: the mean place of those it is joined with, in the layer before
 * (`side` -1) or behind (1). */
static void sort_layer(struct graph *g, int layer, int side)
{
	for (size_t k = 0; k < g->n_order[layer]; k++) {
		size_t own = g->order[layer][k], n = 0;
		double sum = 0;

		for (size_t j = 0; j < g->n_joints; j++) {
			size_t here = side < 0 ? g->joints[j].b : g->joints[j].a,
			       there = side < 0 ? g->joints[j].a : g->joints[j].b;

			if (here == own) {
				/* ends of a long layer and of a short one are the same height */
				sum += ((double)g->items[there].place + 0.5) /
				       (double)g->n_order[g->items[there].layer];
				n++;
			}
		}
		g->items[own].wish =
			n ? sum / (double)n :
			    ((double)g->items[own].place + 0.5) / (double)g->n_order[layer];
	}
	sorted = g;
	qsort(g->order[layer], g->n_order[layer], sizeof(**g->order), by_wish);
	for (size_t k = 0; k < g->n_order[layer]; k++)
		g->items[g->order[layer][k]].place = k;
}

static void order_items(struct graph *g)
{
	cleanup_free size_t *best = mem_array(g->n_items + 1, sizeof(*best));
	size_t least = SIZE_MAX;

	for (int sweep = 0; sweep <= LAYERS_SWEEPS && least; sweep++) {
		size_t n;

		for (int i = 1; sweep && i < g->n_layers; i++)
			sort_layer(g, sweep & 1 ? i : g->n_layers - 1 - i, sweep & 1 ? -1 : 1);
		n = crossings(g);
		if (n >= least)
			continue;
		least = n;
		for (size_t i = 0; i < g->n_items; i++)
			best[i] = g->items[i].place;
	}
	for (size_t i = 0; i < g->n_items; i++) {
		g->items[i].place = best[i];
		g->order[g->items[i].layer][best[i]] = i;
	}
}

/* --- 5: heights --- */

struct block {
	double sum;
	size_t n;
};

/* The tops of a layer that are nearest to the wishes and do not overlap: blocks of those that touch
 * have the mean of what they wish. */
static void settle(struct graph *g, int layer)
{
	size_t n = g->n_order[layer], at = 0, n_blocks = 0;
	cleanup_free struct block *blocks = mem_array(n + 1, sizeof(*blocks));
	double under = 0;

	for (size_t k = 0; k < n; k++) {
		const struct item *x = &g->items[g->order[layer][k]];

		blocks[n_blocks++] = (struct block){x->wish - under, 1};
		under += x->h + LAYERS_GAP;
		while (n_blocks > 1 &&
		       blocks[n_blocks - 2].sum / (double)blocks[n_blocks - 2].n >=
			       blocks[n_blocks - 1].sum / (double)blocks[n_blocks - 1].n) {
			blocks[n_blocks - 2].sum += blocks[n_blocks - 1].sum;
			blocks[n_blocks - 2].n += blocks[n_blocks - 1].n;
			n_blocks--;
		}
	}
	under = 0;
	for (size_t b = 0; b < n_blocks; b++)
		for (size_t k = 0; k < blocks[b].n; k++) {
			struct item *x = &g->items[g->order[layer][at++]];

			x->y = blocks[b].sum / (double)blocks[b].n + under;
			under += x->h + LAYERS_GAP;
		}
}

/* sides: -1 what is to the left is gone by, 1 to the right, 0 both */
static void wish_heights(struct graph *g, int layer, int side)
{
	for (size_t k = 0; k < g->n_order[layer]; k++) {
		size_t own = g->order[layer][k], n = 0;
		struct item *x = &g->items[own];
		double sum = 0;

		for (size_t j = 0; j < g->n_joints; j++) {
			bool left = g->joints[j].b == own && side <= 0,
			     right = g->joints[j].a == own && side >= 0;
			const struct item *other = left  ? &g->items[g->joints[j].a] :
						   right ? &g->items[g->joints[j].b] :
							   NULL;

			if (other) {
				sum += other->y + other->level;
				n++;
			}
		}
		x->wish = n ? sum / (double)n - x->level : x->y;
	}
}

static void heights(struct graph *g)
{
	double top = 1e9;

	for (int layer = 0; layer < g->n_layers; layer++)
		settle(g, layer); /* all wishes are equal: they keep their order */
	for (int round = 0; round < PLACE_ROUNDS; round++)
		for (int i = 0; i < g->n_layers; i++) {
			int layer = round & 1 ? g->n_layers - 1 - i : i;

			wish_heights(g, layer, round + 2 >= PLACE_ROUNDS ? 0 : round & 1 ? 1 : -1);
			settle(g, layer);
		}
	for (size_t i = 0; i < g->n_items; i++)
		top = g->items[i].y < top ? g->items[i].y : top;
	for (size_t i = 0; i < g->n_items; i++)
		g->items[i].y -= top;
}

/* --- what comes of it --- */

static int *layer_lefts(const struct graph *g, int **widths)
{
	int *left = mem_array((size_t)g->n_layers + 2, sizeof(*left));

	*widths = mem_array((size_t)g->n_layers + 1, sizeof(**widths));
	for (size_t i = 0; i < g->n_items; i++)
		if (g->items[i].w > (*widths)[g->items[i].layer])
			(*widths)[g->items[i].layer] = g->items[i].w;
	for (int i = 0; i < g->n_layers; i++)
		left[i + 1] = left[i] + (*widths)[i] + SIDE_GAP;
	return left;
}

static int level_of(const struct item *x)
{
	return (int)(x->y + 0.5) + x->level;
}

/* Where a link leaves or enters a box: one place each at its side, in the order of what they lead
 * to. */
static int port_of(const struct graph *g, size_t box, bool right, size_t link)
{
	size_t own = right ? g->first_item[link] : g->first_item[link] + g->n_chain[link] - 1,
	       n = 0, before = 0;

	for (size_t i = 0; i < g->n_links; i++) {
		size_t item = right ? g->first_item[i] : g->first_item[i] + g->n_chain[i] - 1;

		if ((right ? left_of(g, i) : right_of(g, i)) != box ||
		    (!right && is_bow(&g->links[i])))
			continue;
		n += 1 + is_bow(&g->links[i]);
		before += g->items[item].place < g->items[own].place ? 1 + is_bow(&g->links[i]) : 0;
	}
	return g->boxes[box].y +
	       (int)((double)g->boxes[box].h * (double)(before + 1) / (double)(n + 1) + 0.5);
}

static void point_add(struct layers_link *x, int px, int py)
{
	x->points[x->n_points++] = (struct layers_point){px, py};
}

static void link_points(struct graph *g, size_t i, const int *left, const int *widths)
{
	struct layers_link *x = &g->links[i];
	const struct layers_box *a = &g->boxes[left_of(g, i)], *b = &g->boxes[right_of(g, i)];
	const struct item *label = &g->items[g->first_item[i]];

	x->points = mem_array(2 * g->n_chain[i] + 6, sizeof(*x->points));
	x->n_points = 0;
	x->x = left[label->layer] + (widths[label->layer] - label->w) / 2;
	x->y = (int)(label->y + 0.5);
	point_add(x, a->x + a->w, port_of(g, left_of(g, i), true, i));
	for (size_t k = 0; k < g->n_chain[i]; k++) {
		const struct item *it = &g->items[g->first_item[i] + k];

		point_add(x, left[it->layer], level_of(it));
		point_add(x, left[it->layer] + widths[it->layer], level_of(it));
	}
	if (is_bow(x)) {
		point_add(x, left[label->layer] + widths[label->layer], level_of(label) + BOW);
		point_add(x, left[label->layer], level_of(label) + BOW);
		point_add(x, a->x + a->w, port_of(g, x->from, true, i) + PORT);
	} else {
		point_add(x, b->x, port_of(g, right_of(g, i), false, i));
	}
	for (size_t k = 0; g->turned[i] && k < x->n_points / 2; k++) {
		struct layers_point p = x->points[k];

		x->points[k] = x->points[x->n_points - 1 - k];
		x->points[x->n_points - 1 - k] = p;
	}
}

static struct layers_size places(struct graph *g)
{
	cleanup_free int *widths = NULL;
	cleanup_free int *left = layer_lefts(g, &widths);
	struct layers_size size = {left[g->n_layers] - (g->n_layers ? SIDE_GAP : 0), 0};

	for (size_t i = 0; i < g->n_items; i++) {
		const struct item *x = &g->items[i];

		if ((int)(x->y + 0.5) + x->h > size.h)
			size.h = (int)(x->y + 0.5) + x->h;
		if (i < g->n_boxes) {
			g->boxes[i].x = left[x->layer];
			g->boxes[i].w = widths[x->layer];
			g->boxes[i].y = (int)(x->y + 0.5);
		}
	}
	for (size_t i = 0; i < g->n_links; i++)
		link_points(g, i, left, widths);
	return size;
}

static void graph_release(struct graph *g)
{
	for (int layer = 0; layer < g->n_layers; layer++)
		free(g->order[layer]);
	free(g->order);
	free(g->n_order);
	free(g->turned);
	free(g->column);
	free(g->items);
	free(g->joints);
	free(g->first_item);
	free(g->n_chain);
}

struct layers_size layers_place(struct layers_box *boxes, size_t n_boxes, struct layers_link *links,
				size_t n_links)
{
	struct graph g = {.boxes = boxes, .n_boxes = n_boxes, .links = links, .n_links = n_links};
	struct layers_size size;

	g.turned = mem_array(n_links + 1, sizeof(*g.turned));
	g.column = mem_array(n_boxes + 1, sizeof(*g.column));
	g.first_item = mem_array(n_links + 1, sizeof(*g.first_item));
	g.n_chain = mem_array(n_links + 1, sizeof(*g.n_chain));
	turn_circles(&g);
	columns(&g);
	items_make(&g);
	order_items(&g);
	heights(&g);
	size = places(&g);
	graph_release(&g);
	return size;
}

void layers_release(struct layers_link *links, size_t n_links)
{
	for (size_t i = 0; i < n_links; i++)
		free(links[i].points);
}
