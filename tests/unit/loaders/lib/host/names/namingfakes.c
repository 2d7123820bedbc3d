/* SPDX-License-Identifier: Apache-2.0 */
/* namingfakes: see the header. */
#include "tests/unit/loaders/lib/host/names/namingfakes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/maps/mapsproto.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "schema/image/go.h"
#include "schema/image/lines.h"

/* ---- the store ---- */

struct fake_image images[FAKES];
struct fake_function functions[FAKES];
struct fake_frame frames[FAKES];
struct fake_process processes[FAKES];
struct fake_container containers[FAKES];
uint32_t n_images, n_functions, n_frames, n_processes, n_containers, epoch = 1;
struct strbuf last_stack;

uint64_t segment;
char last_note[256];
uint32_t n_notes;

uint32_t store_epoch(const struct store_writer *w)
{
	(void)w;
	return epoch;
}

uint64_t store_gauge_epoch(struct store_writer *w)
{
	(void)w;
	return segment;
}

void store_process_note(struct store_writer *w, uint32_t run, uint32_t process, const char *key,
			const char *value)
{
	(void)w;
	(void)process;
	assert_int_equal(run, 1);
	assert_string_equal(key, "unnamed");
	snprintf(last_note, sizeof(last_note), "%s", value);
	n_notes++;
}

uint32_t store_image(struct store_writer *w, const struct store_image *i)
{
	(void)w;
	for (uint32_t k = 1; k <= n_images; k++)
		if (!strcmp(images[k].name, i->name) && !strcmp(images[k].key, i->key))
			return k;
	n_images++;
	snprintf(images[n_images].name, 64, "%s", i->name);
	snprintf(images[n_images].key, 64, "%s", i->key);
	images[n_images].kind = i->kind;
	images[n_images].learnt[0] = '\0';
	return n_images;
}

uint32_t store_function(struct store_writer *w, const struct store_function *f)
{
	(void)w;
	for (uint32_t k = 1; k <= n_functions; k++)
		if (!strcmp(functions[k].name, f->name) && functions[k].image == f->image &&
		    !strcmp(functions[k].file, f->file) && functions[k].line == f->line)
			return k;
	n_functions++;
	snprintf(functions[n_functions].file, 64, "%s", f->file);
	functions[n_functions].line = f->line;
	snprintf(functions[n_functions].name, 64, "%s", f->name);
	functions[n_functions].image = f->image;
	return n_functions;
}

uint32_t store_frame(struct store_writer *w, const struct store_frame *f)
{
	(void)w;
	for (uint32_t k = 1; k <= n_frames; k++)
		if (!memcmp(&frames[k].f, f, sizeof(*f)))
			return k;
	frames[++n_frames].f = *f;
	frames[n_frames].named = frames[n_frames].line = frames[n_frames].outer = 0;
	return n_frames;
}

void store_image_build_id(struct store_writer *w, uint32_t image, const char *build_id)
{
	(void)w;
	snprintf(images[image].learnt, 64, "%s", build_id);
}

void store_frame_name(struct store_writer *w, uint32_t frame, uint32_t function, uint32_t line,
		      uint32_t outer)
{
	(void)w;
	frames[frame].named = function;
	frames[frame].line = line;
	frames[frame].outer = outer;
}

void show(struct strbuf *s, uint32_t frame)
{
	const struct store_frame *f = &frames[frame].f;
	uint32_t function = f->function ? f->function : frames[frame].named;
	uint32_t line = f->function ? f->line : frames[frame].line;
	uint32_t outer = f->function ? f->outer : frames[frame].outer;

	if (outer)
		show(s, outer);
	strbuf_addf(s, "%s%s", s->len ? " " : "", images[f->image].name);
	if (function)
		strbuf_addf(s, ":%s", functions[function].name);
	strbuf_addf(s, "+%llx%s", (unsigned long long)f->offset, f->leaf ? "!" : "");
	if (line)
		strbuf_addf(s, "@%s:%u", functions[function].file, line);
}

uint32_t stack_frames[64];
size_t stack_n;

uint32_t store_stack(struct store_writer *w, const uint32_t *list, size_t len)
{
	(void)w;
	memcpy(stack_frames, list, len * sizeof(*list));
	stack_n = len;
	return 1;
}

uint32_t store_process(struct store_writer *w, const struct store_process *p)
{
	(void)w;
	n_processes++;
	snprintf(processes[n_processes].comm, 64, "%s", p->comm);
	snprintf(processes[n_processes].args, 64, "%s", p->args);
	snprintf(processes[n_processes].unit, 64, "%s", p->unit ? p->unit : "");
	processes[n_processes].pid = p->pid;
	processes[n_processes].container = p->container;
	processes[n_processes].self = p->self;
	return n_processes;
}

uint32_t store_container(struct store_writer *w, const struct store_container *c)
{
	(void)w;
	n_containers++;
	snprintf(containers[n_containers].runtime, 32, "%s", c->runtime);
	snprintf(containers[n_containers].id, 80, "%s", c->runtime_id);
	snprintf(containers[n_containers].name, 64, "%s", c->name);
	snprintf(containers[n_containers].image, 64, "%s", c->image);
	snprintf(containers[n_containers].started, 40, "%s", c->started ? c->started : "");
	return n_containers;
}

/* ---- image indexes: one function from 0x1000 to 0x1100 "one", to 0x1200 "two", a trampoline at
 * 0x1300; the virtual address is the offset plus 0x400000 ---- */

bool image_offset_to_vaddr(const struct image *img, uint64_t offset, uint64_t *vaddr)
{
	(void)img;
	*vaddr = offset + 0x400000;
	return offset < 0x10000;
}

bool image_symbol_at(const struct image *img, uint64_t vaddr, struct image_symbol *out)
{
	static const struct image_symbol table[] = {
		{"one", 0x401000, 0x100}, {"two", 0x401100, 0x100}, {"__restore_rt", 0x401300, 9}};

	(void)img;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (vaddr >= table[i].addr && vaddr - table[i].addr < table[i].size) {
			*out = table[i];
			return true;
		}
	}
	return false;
}

/* Lines: "one" begins at x.c:10; from 0x401010 to 0x401020 "tiny" of t.h was inlined at x.c:12, and
 * "nano" into that; from 0x401040 on a table is included from t.h. Nothing is known of the others,
 * and of none while lines are off. */
bool lines_known;
bool image_go(const struct image *img, struct image_go_record *out)
{
	(void)img;
	(void)out;
	return false;
}

struct image_ident ident;

const struct image_ident *image_ident(const struct image *img)
{
	(void)img;
	return &ident;
}

size_t image_lines_at(const struct image *img, uint64_t vaddr, struct image_source_frame *out,
		      size_t max)
{
	const struct image_source_frame chain[] = {
		{"nano", "t.h", (uint32_t)(vaddr & 3) + 7, 0, true},
		{"tiny", "t.h", 5, 0, true},
		{NULL, "x.c", 12, 0, false}};

	(void)img;
	if (!lines_known || vaddr < 0x401000 || vaddr >= 0x401100)
		return 0;
	if (vaddr >= 0x401010 && vaddr < 0x401020) {
		assert_true(max >= 3);
		memcpy(out, chain, sizeof(chain));
		return 3;
	}
	*out = (struct image_source_frame){NULL, vaddr >= 0x401040 ? "t.h" : "x.c",
					   vaddr >= 0x401040 ? 90 : 10, 0, false};
	return 1;
}

uint32_t image_function_line(const struct image *img, uint64_t vaddr)
{
	(void)img;
	return vaddr == 0x401000 ? 10 : 0;
}

/* ---- sonde-maps: a library at 0x10000000 (ready, pending or refused), anonymous code at
 * 0x20000000 ---- */

struct hostmaps_image lib = {.id = 7,
			     .kind = MP_IMAGE_ELF,
			     .path = "/lib/libx.so",
			     .name = "libx.so",
			     .build_id = "ab",
			     .key = "",
			     .reason = "",
			     .generation = 1};
struct hostmaps_process proc_a = {.tgid = 4190002,
				  .start_ns = 5,
				  .exec_id = 1,
				  .comm = "a",
				  .exe = "/bin/a",
				  .args = "a -x",
				  .cgroup = "/",
				  .to_ns = UINT64_MAX};
struct hostmaps_image *ready;
int read_calls;
int ready_after = -1;

int hostmaps_fd(const struct hostmaps *hm)
{
	(void)hm;
	return -1;
}

void make_ready(void)
{
	lib.state = MP_INDEX_READY;
	lib.key = "ab-1";
	lib.index = (const struct image *)&lib;
	ready = &lib;
}

int hostmaps_read(struct hostmaps *hm)
{
	(void)hm;
	if (++read_calls == ready_after)
		make_ready();
	return 0;
}

bool hostmaps_has_mappings(const struct hostmaps *hm)
{
	(void)hm;
	return true;
}

struct hostmaps_image *hostmaps_next_ready(struct hostmaps *hm)
{
	struct hostmaps_image *r = ready;

	(void)hm;
	ready = NULL;
	return r;
}

/* Nothing was reported unless `told` says so. */
struct container_names told;

const struct container_names *hostmaps_container(const struct hostmaps *hm, const char *id)
{
	(void)hm;
	(void)id;
	return told.name ? &told : NULL;
}

size_t hostmaps_files(const struct hostmaps_process *p, const char **paths, size_t max,
		      const struct hostmaps_image **exe)
{
	(void)max;
	*exe = NULL;
	paths[0] = p->exe;
	return *p->exe ? 1 : 0;
}

struct hostmaps_image *hostmaps_image(const struct hostmaps *hm, uint32_t id)
{
	(void)hm;
	return id == lib.id ? &lib : NULL;
}

struct hostmaps_process *running[8];
size_t n_running;

uint64_t hostmaps_watermark(const struct hostmaps *hm)
{
	(void)hm;
	return 0;
}

void hostmaps_each_known(struct hostmaps *hm, void (*each)(void *ctx, struct hostmaps_process *p),
			 void *ctx)
{
	hostmaps_each(hm, each, ctx);
}

struct hostmaps_process *hostmaps_running(struct hostmaps *hm, uint32_t tgid)
{
	(void)hm;
	for (size_t i = 0; i < n_running; i++)
		if (running[i]->tgid == tgid && running[i]->to_ns == UINT64_MAX)
			return running[i];
	return NULL;
}

void hostmaps_each(struct hostmaps *hm, void (*each)(void *ctx, struct hostmaps_process *p),
		   void *ctx)
{
	(void)hm;
	for (size_t i = 0; i < n_running; i++)
		each(ctx, running[i]);
}

struct hostmaps_process *hostmaps_process(struct hostmaps *hm, uint32_t tgid, uint64_t start_ns,
					  uint32_t exec_id)
{
	(void)hm;
	return tgid == proc_a.tgid && start_ns == proc_a.start_ns && exec_id == proc_a.exec_id ?
		       &proc_a :
		       NULL;
}

bool frames_stand;
uint64_t generation = 1;
int owners_asked, args_wanted, names_wanted;
void (*args_learnt)(void *ctx, struct hostmaps_process *p);
void *args_learnt_ctx;

bool hostmaps_frames_stand(const struct hostmaps *hm, const struct hostmaps_process *p,
			   uint64_t tables_ns, uint64_t time_ns)
{
	(void)hm;
	(void)p;
	(void)tables_ns;
	(void)time_ns;
	return frames_stand;
}

uint64_t hostmaps_generation(const struct hostmaps *hm)
{
	(void)hm;
	return generation;
}

void hostmaps_want_args(struct hostmaps *hm, struct hostmaps_process *p)
{
	(void)hm;
	args_wanted += p->args_later;
}

void hostmaps_want_names(struct hostmaps *hm, const struct hostmaps_process *p)
{
	(void)hm;
	names_wanted += !!p;
}

/* No file of these processes makes code. */
void hostmaps_mappings_wanted(struct hostmaps *hm, const struct hostmaps_process *p,
			      bool (*wanted)(void *ctx, const struct hostmaps_image *image,
					     uint64_t bytes),
			      void (*each)(void *ctx, uint64_t start, uint64_t end,
					   struct hostmaps_image *image),
			      void *ctx)
{
	(void)hm;
	(void)p;
	(void)wanted;
	(void)each;
	(void)ctx;
}

void hostmaps_on_args(struct hostmaps *hm, void (*learnt)(void *ctx, struct hostmaps_process *p),
		      void *ctx)
{
	(void)hm;
	args_learnt = learnt;
	args_learnt_ctx = ctx;
}

/* Frames of tables lie in the library; with tables of time 1 they are stale. */
void hostmaps_frame_owner(struct hostmaps *hm, struct hostmaps_process *p, uint64_t frame,
			  uint64_t tables_ns, uint64_t time_ns, struct hostmaps_frame *out)
{
	uint64_t addr = FRAME_ADDRESS(frame), at = addr - !(frame & FRAME_EXACT);

	(void)hm;
	(void)p;
	(void)time_ns;
	owners_asked++;
	*out = (struct hostmaps_frame){.offset = addr, .address = addr, .stale = tables_ns == 1};
	if (frame & FRAME_IMAGE)
		*out = (struct hostmaps_frame){.image = &lib,
					       .mapped = true,
					       .offset = frame & FRAME_OFFSET_MASK,
					       .stale = tables_ns == 1};
	else if (at >= 0x10000000 && at < 0x10010000)
		*out = (struct hostmaps_frame){
			.image = &lib, .mapped = true, .offset = addr - 0x10000000};
	else if (at >= 0x20000000 && at < 0x30000000)
		out->mapped = true;
}

/* ---- the tests ---- */

static const char kallsyms_text_[] =
	"ffffffff81000000 T _text\nffffffff81000100 T entry_SYSCALL_64_after_hwframe\n"
	"ffffffff81000200 T do_work\nffffffff81000300 T asm_exc_page_fault\n"
	"ffffffff81000400 T _etext\nffffffffc0000100 t m_fn\t[mod]\n"
	"ffffffffc0200000 t bpf_prog_1_x\t[bpf]\n";
char kallsyms_path[] = "/tmp/sonde-kallsyms-XXXXXX";

struct naming *n;

int fake_setup(void **state)
{
	struct naming_opts o = {
		.kallsyms = kallsyms_path, .docker_root = "/nonexistent", .generated = true};

	(void)state;
	n_images = n_functions = n_frames = n_processes = n_containers = n_notes = 0;
	free(lib.user);
	free(proc_a.user);
	lib.user = proc_a.user = NULL;
	lib.state = 0;
	lib.key = "";
	lib.index = NULL;
	proc_a.cgroup = "/";
	proc_a.comm = "a";
	proc_a.exe = "/bin/a";
	proc_a.args = "a -x";
	proc_a.args_later = false;
	proc_a.serial = 0;
	frames_stand = false;
	owners_asked = args_wanted = names_wanted = 0;
	ready = NULL;
	ready_after = -1;
	read_calls = 0;
	lines_known = false;
	ident = (struct image_ident){0};
	lib.told = 0;
	return naming_open(NULL, NULL, &o, &n, NULL);
}

int fake_teardown(void **state)
{
	(void)state;
	naming_close(n);
	return 0;
}

struct naming_result last;

const char *name_it(struct sample *s)
{
	if (!s->ev.tgid) {
		s->ev.tgid = proc_a.tgid;
		s->ev.start_ns = proc_a.start_ns;
		s->ev.exec_id = proc_a.exec_id;
	}
	if (!s->ev.n_kernel && s->ev.n_user && s->ev.end == STACK_END_NONE)
		s->addrs[0] |= FRAME_EXACT; /* interrupted in user space */
	naming_stack(n, &s->ev, s->addrs, &last);
	strbuf_reset(&last_stack);
	for (size_t i = 0; i < stack_n; i++)
		show(&last_stack, stack_frames[i]);
	return strbuf_str(&last_stack);
}

void reopen(const char *exclude, const char *include)
{
	struct naming_opts o = {.kallsyms = kallsyms_path,
				.docker_root = "/nonexistent",
				.exclude = exclude,
				.include = include};

	naming_close(n);
	free(proc_a.user);
	proc_a.user = NULL;
	assert_int_equal(naming_open(NULL, NULL, &o, &n, NULL), 0);
}

static int fakes_begin(void **state)
{
	int fd = mkstemp(kallsyms_path);

	(void)state;
	if (fd < 0 || write(fd, kallsyms_text_, sizeof(kallsyms_text_) - 1) < 0)
		return 1;
	return close(fd);
}

static int fakes_end(void **state)
{
	(void)state;
	strbuf_release(&last_stack);
	free(lib.user);
	free(proc_a.user);
	return unlink(kallsyms_path);
}

const struct test_group test_group = {fakes_begin, fakes_end};
