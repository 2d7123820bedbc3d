/* SPDX-License-Identifier: Apache-2.0 */
/* kerneltypes: the selected types of this kernel have the layout that the kernel's BTF says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/btf.h>

#include "loaders/lib/bpf/load/kerneltypes.h"
#include "probes/maps.skel.h"
#include "schema/base/array.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

static struct btf *the_kernels(void)
{
	struct btf *kernel = btf__load_vmlinux_btf();

	if (!kernel)
		skip_missing("the kernel's types (/sys/kernel/btf/vmlinux)");
	return kernel;
}

/* Two types are laid out alike: kinds, names, sizes, and each member's name, place and type.
 * Pointers are all alike. */
static void assert_same(const struct btf *a, uint32_t one, const struct btf *b, uint32_t other)
{
	const struct btf_type *t = btf__type_by_id(a, one), *u = btf__type_by_id(b, other);

	assert_non_null(u);
	assert_int_equal(btf_kind(t), btf_kind(u));
	assert_string_equal(btf__name_by_offset(a, t->name_off),
			    btf__name_by_offset(b, u->name_off));
	if (btf_is_ptr(t))
		return;
	if (btf_is_mod(t) || btf_is_typedef(t)) {
		if (t->type && !btf_is_func_proto(btf__type_by_id(a, t->type)))
			assert_same(a, t->type, b, u->type);
		return;
	}
	if (btf_is_array(t)) {
		assert_int_equal(btf_array(t)->nelems, btf_array(u)->nelems);
		assert_same(a, btf_array(t)->type, b, btf_array(u)->type);
		return;
	}
	assert_int_equal(t->size, u->size);
	assert_int_equal(btf_vlen(t), btf_vlen(u));
	for (uint16_t i = 0; btf_is_composite(t) && i < btf_vlen(t); i++) {
		assert_string_equal(btf__name_by_offset(a, btf_members(t)[i].name_off),
				    btf__name_by_offset(b, btf_members(u)[i].name_off));
		assert_int_equal(btf_members(t)[i].offset, btf_members(u)[i].offset);
		assert_same(a, btf_members(t)[i].type, b, btf_members(u)[i].type);
	}
}

TEST(what_is_named_is_laid_out_as_in_the_kernel)
{
	struct btf *kernel = the_kernels(), *programs = btf__new_empty(), *picked;
	static const char *const names[] = {"task_struct___maps", "mm_struct", "cgroup___old",
					    "no_such_struct"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_true(btf__add_struct(programs, names[i], 0) > 0);
	picked = kerneltypes_pick(kernel, programs);
	assert_non_null(picked);
	assert_true(btf__type_cnt(picked) < btf__type_cnt(kernel) / 10);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char name[64];
		int id;

		snprintf(name, sizeof(name), "%s", names[i]);
		if (strstr(name, "___"))
			*strstr(name, "___") = 0;
		id = btf__find_by_name_kind(kernel, name, BTF_KIND_STRUCT);
		if (i == 3)
			assert_true(id < 0 && btf__find_by_name(picked, name) < 0);
		else
			assert_same(
				kernel, (uint32_t)id, picked,
				(uint32_t)btf__find_by_name_kind(picked, name, BTF_KIND_STRUCT));
	}
	assert_true(btf__find_by_name_kind(picked, "net", BTF_KIND_STRUCT) <
		    0); /* met behind pointers alone */
	btf__free(picked);
	btf__free(programs);
	btf__free(kernel);
}

TEST(the_file_is_made_once_and_anew_when_it_is_damaged)
{
	char dir[] = "/tmp/sonde-kerneltypes-XXXXXX", path[PATH_MAX], again[PATH_MAX], command[64];
	struct stat first, second;
	size_t size;
	const void *elf = maps_bpf__elf_bytes(&size);
	struct btf *btf;

	btf__free(the_kernels());
	assert_non_null(mkdtemp(dir));
	assert_null(kerneltypes_path(dir, elf, size, path)); /* no such folder yet */
	assert_null(kerneltypes_path(NULL, elf, size, path));
	snprintf(again, sizeof(again), "%s/images", dir);
	assert_int_equal(mkdir(again, 0700), 0);
	assert_ptr_equal(kerneltypes_path(dir, elf, size, path), path);
	assert_int_equal(stat(path, &first), 0);
	assert_int_equal(first.st_mode & 0777, 0600);
	assert_non_null(kerneltypes_path(dir, elf, size, again));
	assert_string_equal(path, again);
	assert_int_equal(stat(path, &second), 0);
	assert_int_equal(first.st_ino, second.st_ino);
	assert_int_equal(truncate(path, first.st_size / 2), 0);
	assert_non_null(kerneltypes_path(dir, elf, size, again));
	assert_int_equal(stat(path, &second), 0);
	assert_int_equal(second.st_size, first.st_size);
	btf = btf__parse(path, NULL); /* libbpf ignores the bytes after it */
	assert_non_null(btf);
	assert_true(btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT) > 0);
	btf__free(btf);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}
