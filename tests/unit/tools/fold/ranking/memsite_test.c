/* SPDX-License-Identifier: Apache-2.0 */
/* memsite: the line that a person looks for is the nearest one that is nobody's library. */
#include "tools/fold/ranking/memsite.h"

#include "schema/base/array.h"
#include "tests/unit/test.h"

/* A stack, root first, as nodes 1..n of a fold. */
static uint32_t site_by(uint32_t (*find)(const struct fold *f, uint32_t node),
			const struct fold_frame *frames, uint32_t n)
{
	struct fold_node nodes[16] = {{0}};
	const struct fold f = {
		.frames = (struct fold_frame *)frames, .nodes = nodes, .n_nodes = n + 1};

	for (uint32_t i = 1; i <= n; i++)
		nodes[i] = (struct fold_node){.frame = i - 1, .parent = i - 1};
	return find(&f, n);
}

static uint32_t site(const struct fold_frame *frames, uint32_t n)
{
	return site_by(memsite_node, frames, n);
}

TEST(allocators_and_the_c_library_are_passed_over)
{
	static const struct fold_frame frames[] = {
		{.name = "main", .module = "app", .file = ""},
		{.name = "leaky", .module = "app", .file = ""},
		{.name = "std::vector<int>::push_back(int const&)", .module = "app", .file = ""},
		{.name = "operator new(unsigned long)", .module = "libstdc++.so.6", .file = ""},
		{.name = "_int_malloc", .module = "libc.so.6", .file = ""},
		{.name = "asm_exc_page_fault",
		 .module = "[kernel]",
		 .file = "",
		 .origin = FOLD_KERNEL}};

	assert_int_equal(site(frames, ARRAY_SIZE(frames)), 2);
}

TEST(a_script_s_line_is_preferred_to_its_interpreter_s)
{
	static const struct fold_frame frames[] = {
		{.name = "main", .module = "python3.11", .file = ""},
		{.name = "run", .module = "x.py", .file = "x.py", .origin = FOLD_SCRIPT},
		{.name = "load", .module = "x.py", .file = "x.py", .origin = FOLD_SCRIPT},
		{.name = "npy_alloc", .module = "multiarray.so", .file = ""},
		{.name = "memset", .module = "libc.so.6", .file = ""}};

	assert_int_equal(site(frames, ARRAY_SIZE(frames)), 3);
}

TEST(allocators_that_programs_have_of_their_own_are_passed_over)
{
	assert_true(memsite_library("guc_malloc", "postgres"));
	assert_true(memsite_library("AllocSetAlloc", "postgres"));
	assert_true(memsite_library("zmalloc_usable", "redis-server"));
	assert_false(memsite_library("set_config_option", "postgres"));
	assert_false(memsite_library("leaky", "app"));
}

TEST(a_stripped_program_s_allocator_is_passed_over_with_its_nameless_parts)
{
	static const struct fold_frame frames[] = {
		{.name = "exec_simple_query", .module = "postgres", .file = "", .named = true},
		{.name = "postgres+0x266db8", .module = "postgres", .file = ""},
		{.name = "palloc", .module = "postgres", .file = "", .named = true},
		{.name = "postgres+0x5c7800", .module = "postgres", .file = ""},
		{.name = "postgres+0x5c7860", .module = "postgres", .file = ""}};
	static const struct fold_frame visited[] = {
		{.name = "std::for_each", .module = "app", .file = "", .named = true},
		{.name = "app+0x1000", .module = "app", .file = ""}};

	assert_int_equal(site(frames, ARRAY_SIZE(frames)), 2);
	assert_int_equal(site(visited, ARRAY_SIZE(visited)), 2);
}

TEST(what_fills_an_array_of_numpy_is_passed_over)
{
	static const struct fold_frame frames[] = {
		{.name = "leaky", .module = "x.py", .file = "x.py", .origin = FOLD_SCRIPT},
		{.name = "ones",
		 .module = "core/numeric",
		 .file = "/usr/lib/python3/dist-packages/numpy/core/numeric.py",
		 .origin = FOLD_SCRIPT},
		{.name = "array_function_internals.public_api",
		 .module = "<__array_function__ internals>",
		 .file = "<__array_function__ internals>",
		 .origin = FOLD_SCRIPT},
		{.name = "copyto", .module = "_multiarray.so", .file = ""}};

	assert_int_equal(site(frames, ARRAY_SIZE(frames)), 1);
}

TEST(the_standard_library_of_a_script_is_passed_over_unless_there_is_nothing_else)
{
#define PYTHON(name_, file_)                                                              \
	{                                                                                 \
		.name = name_, .module = "[python]", .file = file_, .origin = FOLD_SCRIPT \
	}
	static const struct fold_frame own[] = {
		PYTHON("load_order", "/srv/orders.py"),
		PYTHON("dumps", "/usr/lib/python3.11/json/__init__.py"),
		PYTHON("JSONEncoder.iterencode", "/usr/lib/python3.11/json/encoder.py")};
	static const struct fold_frame installed[] = {
		PYTHON("main", "/srv/orders.py"),
		PYTHON("parse", "/usr/lib/python3.11/site-packages/yaml/reader.py")};
	static const struct fold_frame nothing_else[] = {
		{.name = "main", .module = "python3.11", .file = ""},
		PYTHON("_run_module_as_main", "<frozen runpy>"),
		PYTHON("serve_forever", "/usr/lib/python3.11/socketserver.py")};
	static const struct fold_frame ruby[] = {
		PYTHON("remember", "/srv/app.rb"),
		PYTHON("JSON.generate", "/usr/lib/ruby/3.1.0/json/common.rb")};
	static const struct fold_frame gem[] = {
		PYTHON("remember", "/srv/app.rb"),
		PYTHON("Rack.call", "/var/lib/gems/3.1.0/gems/rack-2/lib/rack.rb")};

	assert_int_equal(site(own, ARRAY_SIZE(own)), 1);
	assert_int_equal(site(installed, ARRAY_SIZE(installed)), 2);
	assert_int_equal(site(nothing_else, ARRAY_SIZE(nothing_else)), 3);
	assert_int_equal(site(ruby, ARRAY_SIZE(ruby)), 1);
	assert_int_equal(site(gem, ARRAY_SIZE(gem)), 2);
}

TEST(of_a_page_of_the_host_the_line_is_above_what_it_is_used_for)
{
#define KERNEL(name_)                                                                  \
	{                                                                              \
		.name = name_, .module = "[kernel]", .file = "", .origin = FOLD_KERNEL \
	}
	static const struct fold_frame user[] = {
		{.name = "main", .module = "app", .file = ""},
		{.name = "reads", .module = "app", .file = ""},
		{.name = "read", .module = "libc.so.6", .file = ""},
		KERNEL("ksys_read"),
		KERNEL("filemap_alloc_folio"),
		{.name = "[page cache]", .module = "[memory]", .file = ""}};
	static const struct fold_frame kernel[] = {
		KERNEL("ret_from_fork"),
		KERNEL("nfsd_thread"),
		KERNEL("kmem_cache_alloc_noprof"),
		KERNEL("__alloc_pages_noprof"),
		{.name = "[slab]", .module = "[memory]", .file = ""}};
	static const struct fold_frame alone[] = {
		{.name = "[from before the recording]", .module = "[memory]", .file = ""}};

	assert_int_equal(site_by(memsite_page_node, user, ARRAY_SIZE(user)), 2);
	assert_int_equal(site_by(memsite_page_node, kernel, ARRAY_SIZE(kernel)), 2);
	assert_int_equal(site_by(memsite_page_node, alone, 1), 1);
}

TEST(a_runtime_s_functions_are_passed_over_too)
{
	static const struct fold_frame php[] = {
		{.name = "leaky", .module = "x.php", .file = "x.php", .origin = FOLD_SCRIPT},
		{.name = "str_repeat", .module = "[php]", .file = "", .origin = FOLD_SCRIPT}};
	static const struct fold_frame java[] = {{.name = "Leak.leaky",
						  .module = "[java]",
						  .file = "Leak.java",
						  .origin = FOLD_SCRIPT},
						 {.name = "java.nio.ByteBuffer.allocate",
						  .module = "[java]",
						  .file = "ByteBuffer.java",
						  .origin = FOLD_SCRIPT}};

	assert_int_equal(site(php, ARRAY_SIZE(php)), 1);
	assert_int_equal(site(java, ARRAY_SIZE(java)), 1);
}

TEST(a_stack_of_libraries_alone_ends_at_its_leaf)
{
	static const struct fold_frame frames[] = {
		{.name = "_dl_start", .module = "ld-linux-x86-64.so.2", .file = ""},
		{.name = "memcpy", .module = "ld-linux-x86-64.so.2", .file = ""}};

	assert_int_equal(site(frames, ARRAY_SIZE(frames)), 2);
	assert_int_equal(site(frames, 0), 0);
}

TEST(programs_whose_names_only_look_alike_are_their_own)
{
	assert_false(memsite_library("mallocate", "app"));
	assert_false(memsite_library("read_config", "app"));
	assert_false(memsite_library("runtimes", "app"));
	assert_false(memsite_library("load", "libcurl.so.4"));
	assert_true(memsite_library("runtime.mallocgc", "app"));
	assert_true(memsite_library("anything", "libc.so.6"));
	assert_true(memsite_library("<alloc::vec::Vec<T> as core::clone::Clone>::clone", "app"));
}
