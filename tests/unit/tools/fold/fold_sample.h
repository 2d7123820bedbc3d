/* SPDX-License-Identifier: Apache-2.0 */
/* A small fold made by hand, with all that is hard to print: two call sites of one function, an
 * inlined frame, a frame without a name, a kernel frame, a hostile name, a stack without frames. 75
 * samples of 10 ms. */
#ifndef SONDE_TESTS_FOLD_SAMPLE_H
#define SONDE_TESTS_FOLD_SAMPLE_H

#include "tools/fold/fold.h"
#include "schema/base/array.h"

#define SAMPLE_NS 10000000ull
#define HOSTILE   "</script><img src=x onerror=alert(1)>;\"&'\xf0\x9f\x94\xa5"

#define APP  .module = "app", .module_path = "/usr/bin/app", .build_id = "aa11"
#define LIBC .module = "libc.so.6", .module_path = "/usr/lib/libc.so.6", .build_id = "bb22"
#define NODE(f, p, self, total)                                                        \
	{                                                                              \
		.frame = f, .parent = p, .self_samples = self, .total_samples = total, \
		.self_ns = self * SAMPLE_NS, .total_ns = total * SAMPLE_NS             \
	}
#define LEAF(n, p, t, id, count)                                                   \
	{                                                                          \
		.node = n, .process = p, .thread = t, .tid = id, .samples = count, \
		.ns = count * SAMPLE_NS                                            \
	}

/* clang-format off */
static struct fold_frame sample_frames[] = {
	{.name = "-", .module = "", .module_path = "", .build_id = "", .file = ""},
	{.name = "main", APP, .file = "main.c", .line = 10, .offset = 0x1100, .named = true},
	{.name = "work", APP, .file = "work.c", .line = 20, .offset = 0x1200, .named = true},
	{.name = "small", APP, .file = "work.h", .line = 3, .offset = 0x1200, .named = true, .inlined = true},
	{.name = "libc.so.6+0x1234", LIBC, .file = "", .offset = 0x1234},
	{.name = "do_syscall_64", .module = "[kernel]", .module_path = "", .build_id = "", .file = "",
	 .offset = 0xffffffff81000010ull, .named = true, .origin = FOLD_KERNEL},
	{.name = HOSTILE, .module = "ev<il>", .module_path = "/tmp/ev<il>", .build_id = "", .file = "", .named = true},
	{.name = "main", APP, .file = "main.c", .line = 12, .function_line = 8, .offset = 0x1150, .named = true},
};
/* clang-format on */
static struct fold_node sample_nodes[] = {
	NODE(0, 0, 3, 75),  NODE(1, 0, 0, 60), /* 1 main */
	NODE(2, 1, 0, 30),                     /* 2 main;work */
	NODE(3, 2, 30, 30),                    /* 3 main;work;small, inlined */
	NODE(4, 1, 10, 30),                    /* 4 main;libc */
	NODE(5, 4, 20, 20),                    /* 5 main;libc;kernel */
	NODE(7, 0, 0, 5),                      /* 6 main, from another place */
	NODE(2, 6, 5, 5),                      /* 7 main;work */
	NODE(6, 0, 7, 7),                      /* 8 hostile */
};
/* clang-format off */
static struct fold_process sample_processes[] = {
	{.pid = 7, .comm = "other", .exe = "/tmp/other", .args = "", .container = "", .container_id = "", .ns = 7,
	 .samples = 7},
	{.pid = 812, .comm = "app", .exe = "/usr/bin/app", .args = "app -x", .container = "web\"1", .container_id = "c0ffee",
	 .ns = 68, .samples = 68},
};
/* clang-format on */
static struct fold_leaf sample_leaves[] = {
	LEAF(0, 1, "app", 812, 3),  LEAF(3, 1, "app", 812, 20), LEAF(3, 1, "w1", 813, 10),
	LEAF(4, 1, "app", 812, 10), LEAF(5, 1, "app", 812, 20), LEAF(7, 1, "w1", 813, 5),
	LEAF(8, 0, "other", 7, 7),
};
static struct fold_loss sample_losses[] = {{"ring", 4}};

static inline struct fold fold_sample(void)
{
	return (struct fold){
		.frames = sample_frames,
		.n_frames = ARRAY_SIZE(sample_frames),
		.nodes = sample_nodes,
		.n_nodes = ARRAY_SIZE(sample_nodes),
		.processes = sample_processes,
		.n_processes = ARRAY_SIZE(sample_processes),
		.leaves = sample_leaves,
		.n_leaves = ARRAY_SIZE(sample_leaves),
		.losses = sample_losses,
		.n_losses = ARRAY_SIZE(sample_losses),
		.from_ns = 1795144200000000000,
		.to_ns = 1795144201000000000,
		.period_ns = SAMPLE_NS,
		.cpus = 2,
		.kind = store_kind_info(STORE_KIND_CPU),
		.unit = STORE_TIME,
		.frames_unnamed_ns = 10 * SAMPLE_NS,
		.host = "ho<st",
		.kernel = "6.1",
	};
}

#endif
