/* SPDX-License-Identifier: Apache-2.0 */
/* naming: the rules of its header, one by one (namingfakes.h has the fakes). */
#include "schema/base/array.h"
#include "tests/unit/loaders/lib/host/names/namingfakes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/names/private.h"
#include "loaders/lib/host/proc/proc.h"
#include "probes/runtimes/runtime.h"

NAMING_TEST(the_leaf_is_folded_and_callers_are_looked_up_before_their_address)
{
	make_ready();
	/* the caller's return address is the first byte of "two": the call is the last instruction
	 * of "one" */
	assert_string_equal(STACK(0, 3, 0x10001155, 0x10001100, 0x10001030),
			    "libx.so:one+1030 libx.so:one+1100 libx.so:two+1100!");
	/* behind the mapping's last byte */
	assert_string_equal(STACK(0, 2, 0x10001000, 0x10010000), "libx.so+10000 libx.so:one+1000!");
}

#define TABLES(why, tables, kernel, user, ...)                   \
	name_it(&(struct sample){.ev = {.n_kernel = kernel,      \
					.n_user = user,          \
					.end = why,              \
					.flags = STACK_F_TABLES, \
					.tables_ns = tables},    \
				 .addrs = {__VA_ARGS__}})
#define IN_LIB(offset) (FRAME_IMAGE | 7ull << FRAME_OFFSET_BITS | (offset))

NAMING_TEST(the_bit_of_a_frame_decides_where_it_is_looked_up)
{
	make_ready();
	assert_string_equal(TABLES(STACK_END_ROOT, 2, 0, 3, IN_LIB(0x1100) | FRAME_EXACT,
				   IN_LIB(0x1100), IN_LIB(0x1030)),
			    "libx.so:one+1030 libx.so:one+1100 libx.so:two+1100!");
	assert_string_equal(
		TABLES(STACK_END_ROOT, 2, 2, 1, 0xffffffff81000210, 0xffffffff81000310,
		       IN_LIB(0x1100) | FRAME_EXACT),
		"libx.so:two+1100 [kernel]:asm_exc_page_fault+310 [kernel]:do_work+200!");
	/* behind a system call instruction, whatever the kernel part looks like, or is hidden */
	assert_string_equal(TABLES(STACK_END_ROOT, 2, 1, 1, 0xffffffff81000310, IN_LIB(0x1100)),
			    "libx.so:one+1100 [kernel]:asm_exc_page_fault+300!");
	assert_string_equal(TABLES(STACK_END_ROOT, 2, 0, 1, IN_LIB(0x1100)), "libx.so:one+1000!");
	assert_string_equal(
		TABLES(STACK_END_ROOT, 2, 1, 1, 0xffffffff81000110, IN_LIB(0x1100) | FRAME_EXACT),
		"libx.so:two+1100 [kernel]:entry_SYSCALL_64_after_hwframe+100!");
	/* what a signal interrupted */
	assert_string_equal(TABLES(STACK_END_ROOT, 2, 0, 3, IN_LIB(0x1010) | FRAME_EXACT,
				   IN_LIB(0x1300), IN_LIB(0x1100) | FRAME_EXACT),
			    "libx.so:two+1100 libx.so:__restore_rt+1300 libx.so:one+1000!");
	assert_int_equal(last.end, STACK_END_ROOT);
	assert_string_equal(images[last.image].name, "libx.so");
	assert_string_equal(last.exe, "/bin/a");
}

#define SCRIPT(kind) (FRAME_SCRIPT | (uint64_t)(kind) << SCRIPT_KIND_SHIFT)

NAMING_TEST(script_frames_that_are_left_at_a_whole_stack_s_end_stand_at_the_outermost_call)
{
	make_ready();
	assert_string_equal(TABLES(STACK_END_ROOT, 2, 0, 4, IN_LIB(0x1100) | FRAME_EXACT,
				   SCRIPT(RUNTIME_PHP), SCRIPT(RUNTIME_RUBY), IN_LIB(0x1010)),
			    "libx.so:one+1010 [ruby]+0 [php]+0 libx.so:two+1100!");
	assert_string_equal(TABLES(STACK_END_ROOT, 2, 0, 5, IN_LIB(0x1100) | FRAME_EXACT,
				   SCRIPT(RUNTIME_PHP), IN_LIB(0x1030), IN_LIB(0x1010),
				   SCRIPT(RUNTIME_RUBY)),
			    "libx.so:one+1010 libx.so:one+1030 [ruby]+0 [php]+0 libx.so:two+1100!");
	assert_string_equal(TABLES(STACK_END_NO_MAPPING, 2, 0, 4, IN_LIB(0x1100) | FRAME_EXACT,
				   SCRIPT(RUNTIME_PHP), IN_LIB(0x1010), SCRIPT(RUNTIME_RUBY)),
			    "[ruby]+0 libx.so:one+1010 [php]+0 libx.so:two+1100!");
	assert_string_equal(TABLES(STACK_END_ROOT, 2, 0, 3, IN_LIB(0x1100) | FRAME_EXACT,
				   IN_LIB(0x1010), SCRIPT(RUNTIME_RUBY)),
			    "[ruby]+0 libx.so:one+1010 libx.so:two+1100!");
}

NAMING_TEST(a_stack_that_exec_or_exit_has_taken_away_is_no_stack_cut_short)
{
	make_ready();
	TABLES(STACK_END_STACK_READ, 2, 1, 1, 0xffffffff81000210, IN_LIB(0x1100));
	assert_int_equal(last.end, STACK_END_GONE);
	TABLES(STACK_END_STACK_READ, 2, 0, 1, IN_LIB(0x1100) | FRAME_EXACT);
	assert_int_equal(last.end, STACK_END_STACK_READ);
	TABLES(STACK_END_STACK_READ, 2, 1, 2, 0xffffffff81000210, IN_LIB(0x1100), IN_LIB(0x1010));
	assert_int_equal(last.end, STACK_END_STACK_READ);
}

NAMING_TEST(beyond_a_frame_that_is_stale_nothing_is_shown)
{
	make_ready();
	assert_string_equal(TABLES(STACK_END_ROOT, 1, 1, 3, 0xffffffff81000310, IN_LIB(0x1110),
				   IN_LIB(0x1010), IN_LIB(0x1020)),
			    "libx.so:two+1110 [kernel]:asm_exc_page_fault+300!");
	assert_int_equal(last.end, STACK_END_STALE);
}

NAMING_TEST(a_signal_trampoline_is_named_at_its_first_byte)
{
	make_ready();
	assert_string_equal(STACK(0, 3, 0x10001010, 0x10001300, 0x10001100),
			    "libx.so:one+1100 libx.so:__restore_rt+1300 libx.so:one+1000!");
}

NAMING_TEST(modules_and_bpf_programs_are_images_of_their_own)
{
	assert_string_equal(STACK(3, 0, 0xffffffffc0000110, 0xffffffffc0200010, 0xffffffff81000210),
			    "[kernel]:do_work+210 [bpf]:bpf_prog_1_x+10 [mod]:m_fn+0!");
	assert_string_equal(STACK(1, 0, 0xffffffff81000500), "[kernel]+500");
	assert_int_equal(images[1].kind, STORE_IMAGE_MODULE);
}

NAMING_TEST(frames_without_an_index_get_their_names_when_it_comes)
{
	struct naming_stat s;

	assert_string_equal(STACK(0, 2, 0x10001155, 0x10001030), "libx.so+1030 libx.so+1155!");
	STACK(0, 2, 0x10001155, 0x1000f000);
	naming_stat(n, &s);
	assert_int_equal(s.named, 0);
	assert_int_equal(s.unnamed_pending, 4);
	make_ready();
	naming_tick(n);
	naming_stat(n, &s);
	assert_int_equal(s.named, 3);
	assert_int_equal(s.leaves_named, 2);
	assert_int_equal(s.unnamed_pending, 0);
	assert_int_equal(s.unnamed_symbol, 1);
	assert_string_equal(functions[frames[1].named ? frames[1].named : 1].name, "two");
	/* what comes now belongs to the row with the real key, and is folded */
	assert_string_equal(STACK(0, 2, 0x10001155, 0x10001030),
			    "libx.so:one+1030 libx.so:two+1100!");
	assert_true(!strncmp(images[1].key, "pending-", 8));
	assert_string_equal(images[2].key, "ab-1");
	naming_stat(n, &s);
	assert_int_equal(s.frames, s.named + s.unnamed_symbol);
}

/* What the frame learnt after it was stored. */
static void show_later(struct strbuf *s, uint32_t frame)
{
	strbuf_addf(s, "%s%s@%s:%u", s->len ? " " : "", functions[frames[frame].named].name,
		    functions[frames[frame].named].file, frames[frame].line);
}

NAMING_TEST(inlined_functions_and_lines_stand_at_the_place)
{
	const struct store_frame *f;

	make_ready();
	lines_known = true;
	/* the innermost alone is in the stack, what it was inlined into hangs on it; all of a
	 * caller are at its exact offset */
	assert_string_equal(
		STACK(0, 2, 0x10001155, 0x10001013),
		"libx.so:one+1013@x.c:12 libx.so:tiny+1013@t.h:5 libx.so:nano+1013@t.h:9 libx.so:two+1100!");
	assert_int_equal(stack_n, 2);
	/* a leaf is folded to its line: two pcs of one line are one frame */
	assert_string_equal(
		STACK(0, 1, 0x10001011),
		"libx.so:one+1000!@x.c:12 libx.so:tiny+1000!@t.h:5 libx.so:nano+1000!@t.h:8");
	f = &frames[stack_frames[0]].f;
	STACK(0, 1, 0x10001015);
	assert_ptr_equal(&frames[stack_frames[0]].f, f);
	STACK(0, 1, 0x10001016);
	assert_ptr_not_equal(&frames[stack_frames[0]].f, f);
	/* the function's row has its first line, in the file in which it begins */
	assert_int_equal(functions[frames[f->outer].f.function].line, 0); /* tiny: inlined */
	assert_string_equal(STACK(0, 1, 0x10001030), "libx.so:one+1000!@x.c:10");
	assert_int_equal(functions[frames[stack_frames[0]].f.function].line, 10);
	assert_string_equal(STACK(0, 1, 0x10001050), "libx.so:one+1000!@t.h:90");
	assert_int_equal(functions[frames[stack_frames[0]].f.function].line, 0);
}

NAMING_TEST(a_row_from_before_the_file_was_read_gains_its_build_id)
{
	uint32_t early;

	STACK(0, 1, 0x10001010);
	early = frames[stack_frames[0]].f.image;
	assert_int_equal(strncmp(images[early].key, "pending-", 8), 0);
	assert_string_equal(images[early].learnt, "");
	make_ready();
	naming_drain(n, 0);
	assert_string_equal(images[early].learnt, "ab");
}

NAMING_TEST(a_logical_frame_is_the_innermost_function_alone)
{
	make_ready();
	lines_known = true;
	/* the form of Go's allocation stacks: nano's pc, then those of the functions it was inlined
	 * into; no leaf is folded */
	assert_string_equal(
		name_it(&(struct sample){
			.ev = {.n_user = 3, .end = STACK_END_ROOT, .flags = STACK_F_LOGICAL},
			.addrs = {0x10001013, 0x10001031, 0x10001156}}),
		"libx.so:two+1156 libx.so:one+1031@x.c:10 libx.so:nano+1013@t.h:9");
	assert_int_equal(stack_n, 3);
	/* the same place in a stack of physical frames is another frame */
	assert_string_equal(
		STACK(0, 2, 0x10001155, 0x10001013),
		"libx.so:one+1013@x.c:12 libx.so:tiny+1013@t.h:5 libx.so:nano+1013@t.h:9 libx.so:two+1100!");
}

NAMING_TEST(a_pending_frame_gains_its_line_and_what_was_inlined)
{
	lines_known = true;
	assert_string_equal(STACK(0, 2, 0x10001011, 0x10001031), "libx.so+1031 libx.so+1011!");
	make_ready();
	naming_tick(n);
	strbuf_reset(&last_stack);
	show(&last_stack, stack_frames[0]);
	show(&last_stack, stack_frames[1]);
	assert_string_equal(strbuf_str(&last_stack),
			    "libx.so:one+1031@x.c:10 libx.so:one+1011!@x.c:12"
			    " libx.so:tiny+1011!@t.h:5 libx.so:nano+1011!@t.h:8");
	assert_true(frames[stack_frames[1]].f.exact);
	assert_false(frames[stack_frames[0]].f.exact);
}

NAMING_TEST(lines_that_come_later_reach_what_was_named_without_them)
{
	uint32_t before[2];

	STACK(0, 1, 0x10001016); /* pending */
	make_ready();
	ident.lines_later = true;
	naming_tick(n);
	assert_string_equal(STACK(0, 2, 0x10001015, 0x10001031),
			    "libx.so:one+1031 libx.so:one+1015!");
	memcpy(before, stack_frames, sizeof(before));
	lines_known = true;
	ident.lines_later = false;
	lib.told = 2;
	ready = &lib;
	naming_tick(n);
	strbuf_reset(&last_stack);
	show_later(&last_stack, before[0]);
	show_later(&last_stack, before[1]);
	show_later(&last_stack, 1);
	assert_string_equal(strbuf_str(&last_stack), "one@x.c:10 nano@t.h:8 nano@t.h:9");
	/* from now on they are there at once, and leaves are folded */
	assert_string_equal(STACK(0, 1, 0x10001030), "libx.so:one+1000!@x.c:10");
}

NAMING_TEST(an_image_that_is_refused_keeps_module_and_offset)
{
	struct naming_stat s;

	STACK(0, 1, 0x10001155);
	lib.state = MP_INDEX_REFUSED;
	ready = &lib;
	naming_tick(n);
	assert_string_equal(STACK(0, 1, 0x10001155), "libx.so+1155!");
	naming_stat(n, &s);
	assert_int_equal(s.unnamed_refused, 2);
	assert_int_equal(s.unnamed_pending, 0);
}

NAMING_TEST(draining_waits_for_what_is_pending_and_no_longer)
{
	assert_int_equal(naming_drain(n, 1000), 0);
	STACK(0, 1, 0x10001155);
	assert_int_equal(naming_drain(n, 30), -ETIMEDOUT);
	ready_after = read_calls + 2;
	assert_int_equal(naming_drain(n, 5000), 0);
	assert_int_equal(read_calls, ready_after);
}

NAMING_TEST(code_without_a_file_is_never_a_bare_address)
{
	assert_string_equal(STACK(0, 2, 0x20345678, 0x20345678), "[anon]+145678 [anon]+145000!");
}

NAMING_TEST(addresses_where_nothing_was_mapped_show_as_one_unknown)
{
	struct naming_stat s;

	make_ready();
	assert_string_equal(STACK(0, 5, 0x10001155, 0x33, 0x44, 0x10001030, 0x55),
			    "libx.so:one+1030 [unknown]+0 libx.so:two+1100!");
	assert_int_equal(last.end, STACK_END_NO_MAPPING);
	assert_string_equal(images[last.image].name, "libx.so");
	naming_stat(n, &s);
	assert_int_equal(s.unnamed_unmapped, 1);
	assert_string_equal(STACK(0, 3, 0x33, 0x44, 0x55), "[unknown]+0");
	assert_int_equal(last.end, STACK_END_NO_MAPPING);
	assert_string_equal(STACK(0, 3, 0x33, 0x44, 0x10001030), "libx.so:one+1030 [unknown]+0");
	assert_int_equal(last.end, STACK_END_NONE);
	assert_string_equal(
		name_it(&(struct sample){.ev = {.n_kernel = 1, .flags = STACK_F_USER_FAULT},
					 .addrs = {0xffffffff81000210}}),
		"[unknown]+0 [kernel]:do_work+200!");
}

#define JIT_PATH "/tmp/perf-4190003.map"

/* The samples are of this process, which has a perf map. */
static void jit_begin(const char *map)
{
	struct proc_stat st;
	FILE *f = fopen(JIT_PATH, "w");

	assert_non_null(f);
	fputs(map, f);
	fclose(f);
	assert_int_equal(proc_read_stat((uint32_t)getpid(), &st), 0);
	proc_a.tgid = (uint32_t)getpid();
	proc_a.start_ns = proc_ticks_ns(st.start_ticks) + 7;
	proc_a.uid = getuid();
	proc_a.nspid = 4190003;
}

static void jit_end(uint32_t tgid, uint64_t start)
{
	unlink(JIT_PATH);
	proc_a.tgid = tgid;
	proc_a.start_ns = start;
	proc_a.nspid = proc_a.uid = 0;
}

/* A loader waits a moment for a map that is read, and goes on without if this machine is busy. */
static bool jit_is_named(uint64_t addr, const char *want)
{
	for (int i = 0; i < 100; i++) {
		if (!strcmp(STACK(0, 1, addr), want))
			return true;
		usleep(100000);
		naming_tick(n);
	}
	return false;
}

NAMING_TEST(a_perf_map_names_code_without_a_file)
{
	uint64_t start = proc_a.start_ns;
	uint32_t tgid = proc_a.tgid;

	jit_begin("20000000 100 JS:*hot\n20000100 100 JS:*cold\n");
	assert_true(jit_is_named(0x20000044, "[jit]:JS:*hot+0!"));
	assert_string_equal(STACK(0, 2, 0x20000044, 0x20000100),
			    "[jit]:JS:*hot+100 [jit]:JS:*hot+0!");
	assert_int_equal(n_notes, 0);
	jit_end(tgid, start);
}

NAMING_TEST(a_perf_map_that_is_refused_is_noted_in_each_segment_until_it_is_read)
{
	uint64_t start = proc_a.start_ns;
	uint32_t tgid = proc_a.tgid;
	struct naming_stat s;
	FILE *f;

	naming_run(n, 1);
	jit_begin("");
	assert_int_equal(truncate(JIT_PATH, 2ll << 30), 0);
	STACK(0, 1, 0x20000044);
	naming_stat(n, &s);
	assert_int_equal(s.perfmap_refused, 1);
	assert_int_equal(n_notes, 1);
	assert_non_null(strstr(last_note, "larger than 1 GiB; 0 of its entries are used. start"));
	naming_tick(n);
	assert_int_equal(n_notes, 1);
	segment++;
	naming_tick(n);
	assert_int_equal(n_notes, 2);
	f = fopen(JIT_PATH, "w");
	fputs("20000000 100 JS:*hot\n", f);
	fclose(f);
	assert_true(jit_is_named(0x20000044, "[jit]:JS:*hot+0!"));
	assert_int_equal(n_notes, 3);
	assert_string_equal(last_note, "");
	jit_end(tgid, start);
}

NAMING_TEST(a_new_epoch_forgets_all_ids)
{
	make_ready();
	STACK(1, 1, 0xffffffff81000210, 0x10001155);
	n_images = n_functions = n_frames = n_processes = 0;
	epoch++;
	assert_string_equal(STACK(1, 1, 0xffffffff81000210, 0x10001155),
			    "libx.so:two+1155 [kernel]:do_work+200!");
	assert_int_equal(n_processes, 1);
}

NAMING_TEST(a_process_is_written_again_only_when_more_is_known)
{
	make_ready();
	STACK(0, 1, 0x10001155);
	STACK(0, 1, 0x10001155);
	assert_int_equal(n_processes, 1);
	proc_a.serial++;
	proc_a.comm = "b";
	STACK(0, 1, 0x10001155);
	assert_int_equal(n_processes, 2);
	assert_string_equal(processes[2].comm, "b");
	assert_false(processes[2].self);
}

NAMING_TEST(a_process_nobody_told_of_has_a_row_with_the_threads_name)
{
	struct sample s = {.ev = {.tgid = 4190009, .start_ns = 3, .thread = "ghost", .n_user = 1},
			   .addrs = {0x10001155}};
	struct naming_stat st;

	assert_string_equal(name_it(&s), "[unknown]+0");
	assert_string_equal(processes[last.process].comm, "ghost");
	name_it(&s);
	assert_int_equal(n_processes, 1);
	naming_stat(n, &st);
	assert_int_equal(st.unknown_process, 2);
}

NAMING_TEST(programs_of_ours_are_marked_and_those_that_only_sound_like_it_are_not)
{
	uint32_t tgid = proc_a.tgid;

	proc_a.exe = "/elsewhere/sonde-cpu";
	STACK(0, 0, 0);
	assert_false(processes[last.process].self);
	proc_a.ppid = (uint32_t)getpid();
	proc_a.serial++;
	STACK(0, 0, 0);
	assert_true(processes[last.process].self);
	proc_a.exe = "/bin/sleep";
	proc_a.serial++;
	STACK(0, 0, 0);
	assert_false(processes[last.process].self);
	proc_a.exe = "/elsewhere/sonde-cpu";
	proc_a.cgroup = "/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	proc_a.serial++;
	STACK(0, 0, 0);
	assert_false(processes[last.process].self);
	proc_a.ppid = 0;
	proc_a.tgid = tgid;
}

NAMING_TEST(programs_that_were_installed_together_know_each_other)
{
	static const struct {
		const char *ours, *dir;
		bool together;
	} of[] = {
		{"/usr/libexec/sonde", "/usr/libexec/sonde", true},
		{"/usr/libexec/sonde", "/usr/bin", true},
		{"/usr/local/lib/sonde", "/usr/local/sbin", true},
		{"/srv/a/build/bin", "/srv/a/build/bin", true},
		{"/usr/libexec/sonde", "/usr/local/bin", false},
		{"/usr/libexec/sonde", "/bin", false},
		{"/usr/libexec/sonde", "/usr/bin/x", false},
		{"/libexec/sonde", "/bin", true},
		{"/srv/a/build/bin", "/srv/a/bin", false},
		{"", "", false},
		{"", "/usr/bin", false},
	};
	char exe[64];

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		snprintf(exe, sizeof(exe), "%s/sonde", of[i].dir);
		assert_int_equal(naming_in_our_folder(of[i].ours, exe, strlen(of[i].dir)),
				 of[i].together);
	}
}

/* The frame of the library at `offset`, in a stack with tables that stand. */
static const char *standing(uint64_t offset)
{
	struct sample s = {.ev = {.n_user = 2, .flags = STACK_F_TABLES, .tables_ns = 5},
			   .addrs = {FRAME_IMAGE | FRAME_EXACT | 7ull << FRAME_OFFSET_BITS | offset,
				     FRAME_IMAGE | 7ull << FRAME_OFFSET_BITS | 0x1110}};

	s.ev.tgid = proc_a.tgid;
	s.ev.start_ns = proc_a.start_ns;
	s.ev.exec_id = proc_a.exec_id;
	return name_it(&s);
}

NAMING_TEST(a_frame_that_stands_is_looked_up_once)
{
	char first[256];
	struct naming_stat s;
	int asked;

	frames_stand = true;
	make_ready();
	ready = NULL;
	snprintf(first, sizeof(first), "%s", standing(0x1010));
	assert_non_null(strstr(first, "libx.so:one"));
	asked = owners_asked;
	assert_int_equal(asked, 2);
	assert_string_equal(standing(0x1010), first);
	assert_int_equal(owners_asked, asked);
	naming_stat(n, &s);
	assert_int_equal(s.frames, 4);
	assert_int_equal(s.named, 4);
	assert_int_equal(s.leaves, 2);
	frames_stand = false; /* its process changed its mappings meanwhile */
	standing(0x1010);
	assert_int_equal(owners_asked, asked + 2);
	frames_stand = true;
	generation++; /* a sonde-maps that counts from 1 again */
	standing(0x1010);
	assert_int_equal(owners_asked, asked + 4);
}

NAMING_TEST(a_frame_whose_index_is_pending_is_asked_for_again)
{
	frames_stand = true;
	standing(0x1010);
	standing(0x1010);
	assert_int_equal(owners_asked, 4);
	make_ready();
	naming_tick(n);
	assert_non_null(strstr(standing(0x1010), "libx.so:one"));
	assert_int_equal(owners_asked, 6);
	standing(0x1010);
	assert_int_equal(owners_asked, 6);
}

NAMING_TEST(who_is_stored_is_asked_for_its_arguments)
{
	proc_a.args = "";
	proc_a.args_later = true;
	assert_int_equal(args_wanted, 0);
	assert_int_equal(naming_row(n, &proc_a), 1);
	assert_int_equal(args_wanted, 1);
	assert_string_equal(processes[1].args, "");
	proc_a.args = "a --late";
	proc_a.args_later = false;
	proc_a.serial++;
	args_learnt(args_learnt_ctx, &proc_a);
	assert_int_equal(n_processes, 2); /* the same row again, in the store */
	assert_string_equal(processes[2].args, "a --late");
	epoch++;
	proc_a.serial++;
	args_learnt(args_learnt_ctx, &proc_a); /* its row went with the old segment */
	assert_int_equal(n_processes, 2);
}

NAMING_TEST(hidden_kernel_names_are_told_and_keep_their_offset)
{
	char path[] = "/tmp/sonde-hidden-XXXXXX";
	struct naming_opts o = {.kallsyms = path};
	int fd = mkstemp(path);
	struct naming_stat s;

	assert_int_equal(write(fd, "0000000000000000 T _text\n", 25), 25);
	close(fd);
	naming_close(n);
	assert_int_equal(naming_open(NULL, NULL, &o, &n, NULL), 0);
	assert_string_equal(STACK(1, 0, 0xffffffff81000210), "[kernel]+1000210");
	naming_stat(n, &s);
	assert_true(s.kernel_hidden);
	assert_int_equal(s.unnamed_kernel, 1);
	unlink(path);
}

NAMING_TEST(pending_frames_are_bounded)
{
	struct naming_opts o = {.kallsyms = kallsyms_path, .max_pending = 2};
	struct naming_stat s;

	naming_close(n);
	assert_int_equal(naming_open(NULL, NULL, &o, &n, NULL), 0);
	STACK(0, 4, 0x10001010, 0x10001020, 0x10001030, 0x10001040);
	make_ready();
	naming_tick(n);
	naming_stat(n, &s);
	assert_int_equal(s.named, 2);
	assert_int_equal(s.unnamed_pending, 2);
}
