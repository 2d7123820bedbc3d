/* SPDX-License-Identifier: Apache-2.0 */
/*
 * namingfakes: hostmaps, the store and the image index, played for the tests of naming. Each stack
 * comes back as text, root first, "image:function+offset" or "image+offset" where a frame has no
 * name, with '!' behind a folded leaf.
 */
#ifndef SONDE_TESTS_NAMINGFAKES_H
#define SONDE_TESTS_NAMINGFAKES_H

#include "loaders/lib/host/proc/containernames.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/base/strbuf.h"
#include "schema/image/image.h"
#include "schema/store/write/writer.h"
#include "tests/unit/test.h"

/* The rows that the store received, from 1 on; each call of store_process and store_container makes
 * one. */
#define FAKES 4096
struct fake_image {
	char name[64], key[64], learnt[64];
	enum store_image_kind kind;
}; /* learnt: the build-id, later */
struct fake_function {
	char name[64], file[64];
	uint32_t image, line;
};
struct fake_frame {
	struct store_frame f;
	uint32_t named, line, outer;
};
struct fake_process {
	char comm[64], args[64], unit[64];
	uint32_t pid, container;
	bool self;
};
struct fake_container {
	char runtime[32], id[80], name[64], image[64], started[40];
};
extern struct fake_image images[FAKES];
extern struct fake_function functions[FAKES];
extern struct fake_frame frames[FAKES];
extern struct fake_process processes[FAKES];
extern struct fake_container containers[FAKES];
extern uint32_t n_images, n_functions, n_frames, n_processes, n_containers, epoch;
extern uint64_t segment; /* store_gauge_epoch */
extern char last_note[256];
extern uint32_t n_notes;
extern struct strbuf last_stack;  /* the last stack that was shown */
extern uint32_t stack_frames[64]; /* the last that the store was given */
extern size_t stack_n;

/* What naming can find out. */
extern bool lines_known;
extern struct image_ident ident;
extern struct hostmaps_image lib, *ready;
extern struct hostmaps_process proc_a;      /* the one that has samples */
extern struct hostmaps_process *running[8]; /* those that hostmaps_each returns */
extern size_t n_running;
extern int read_calls, ready_after;
extern bool frames_stand;   /* what hostmaps_frames_stand says */
extern uint64_t generation; /* of hostmaps */
extern int owners_asked;    /* calls of hostmaps_frame_owner */
extern int args_wanted;     /* hostmaps_want_args, of processes that lack them */
extern int names_wanted;    /* hostmaps_want_names */
extern void (*args_learnt)(void *ctx, struct hostmaps_process *p); /* naming's */
extern void *args_learnt_ctx;
/* What sonde-maps says of any container; without a name: nothing. */
extern struct container_names told;
extern char kallsyms_path[];
void make_ready(void); /* the library's index is there */

extern struct naming *n;          /* the one that is tested, new for each test */
extern struct naming_result last; /* of the last sample */
int fake_setup(void **state);
int fake_teardown(void **state);
/* Starts over with these rules and without what was known. */
void reopen(const char *exclude, const char *include);
void show(struct strbuf *s, uint32_t frame);

struct sample {
	struct stack_event ev;
	uint64_t addrs[16];
};

const char *name_it(struct sample *s);
#define STACK(kernel, user, ...)                                             \
	name_it(&(struct sample){.ev = {.n_kernel = kernel, .n_user = user}, \
				 .addrs = {__VA_ARGS__}})

/* A test of naming; namingfakes.c has the group. */
#define NAMING_TEST(name) TEST_WITH(name, fake_setup, fake_teardown)

#endif
