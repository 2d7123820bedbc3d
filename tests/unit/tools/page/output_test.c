/* SPDX-License-Identifier: Apache-2.0 */
/* folded, flame_html, outfile, output: hostile names stay text, totals hold, a failed write leaves
 * what was there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/strbuf.h"
#include "tests/unit/test.h"
#include "tests/unit/tools/fold/fold_sample.h"
#include "tools/formats/flame_json.h"
#include "tools/formats/folded.h"
#include "tools/page/flame_html.h"
#include "tools/page/flame_pack.h"
#include "tools/page/output.h"
#include "tools/page/page_blob.h"
#include "tools/print/framename.h"
#include "tools/print/json.h"
#include "tools/print/outfile.h"

static char *printed(void (*print)(const struct fold *f, FILE *out))
{
	static char *text;
	static size_t len;
	struct fold f = fold_sample();
	FILE *out = open_memstream(&text, &len);

	print(&f, out);
	fclose(out);
	return text;
}

TEST(folded_lines_hold_every_sample_once)
{
	char *text = printed(folded_write);

	assert_string_equal(text,
			    "main;work 5\n"
			    "main;work;small 30\n"
			    "main;libc.so.6+0x1234 10\n"
			    "main;libc.so.6+0x1234;do_syscall_64 20\n"
			    "</script><img src=x onerror=alert(1)>\\x3b\"&'\xf0\x9f\x94\xa5 7\n"
			    "[no stack] 3\n");
	free(text);
}

TEST(a_semicolon_or_newline_in_a_name_breaks_no_line)
{
	struct strbuf s = STRBUF_INIT;

	framename_add(&s, ";a;b\nc\x01\xff;");
	assert_string_equal(s.buf, "\\x3ba\\x3bb\\x0ac\\x01\xef\xbf\xbd\\x3b");
	strbuf_release(&s);
}

static void write_page(const struct fold *f, FILE *out)
{
	const struct fold *const folds[] = {f};
	struct flame_page p = {.folds = folds,
			       .n_folds = 1,
			       .what = "<b>",
			       .range = "rec 1",
			       .filters = "--comm '<i>'",
			       .group = ""};

	assert_int_equal(flame_html_write(&p, out, NULL), 0);
}

TEST(the_page_holds_names_as_text_only)
{
	char *text = printed(write_page), *data = strstr(text, "id=\"data\">");

	assert_null(strstr(text, "<img"));
	assert_null(strstr(text, "<b>\n"));
	assert_null(strstr(text, "ev<il>"));
	assert_null(strstr(text, "ho<st"));
	assert_null(strstr(text, "@@"));
	assert_non_null(strstr(
		text, "&#60;/script&#62;&#60;img src=x onerror=alert(1)&#62;;&#34;&#38;&#39;"));
	assert_non_null(strstr(text, "Content-Security-Policy\" content=\"default-src 'none'"));
	assert_non_null(strstr(text, "4 lost (ring 4: more came at once"));
	assert_non_null(data);
	data = strchr(data, '>') + 1;
	assert_int_equal(
		data[strspn(data,
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")],
		'<');
	free(text);
}

TEST(template_style_and_script_stay_small)
{
	assert_true((page_html_end - page_html_begin) + (page_css_end - page_css_begin) +
			    (page_loader_end - page_loader_begin) +
			    (page_script_end - page_script_begin) <=
		    60 * 1024);
}

static void write_json(const struct fold *f, FILE *out)
{
	flame_json_write(f, 0, out);
}

TEST(json_rows_are_a_tree_that_adds_up)
{
	char *text = printed(write_json);
	json_t *j = json_loads(text, 0, NULL), *row;
	json_int_t self = 0;
	size_t i;

	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "schema")), "sonde.flame/1");
	json_array_foreach (json_object_get(j, "rows"), i, row) {
		json_t *parent = json_object_get(row, "parent");

		assert_int_equal(json_integer_value(json_object_get(row, "id")), i);
		assert_true(i ? (size_t)json_integer_value(parent) < i : json_is_null(parent));
		self += json_integer_value(json_object_get(row, "self_samples"));
	}
	assert_int_equal(self, 75);
	assert_int_equal(json_integer_value(json_object_get(j, "samples")), 75);
	json_decref(j);
	free(text);
}

TEST(the_name_chooses_the_form)
{
	static const struct {
		const char *path;
		int form;
	} cases[] = {{"x.html", OUTPUT_HTML},
		     {"a/b.PB.GZ", OUTPUT_PPROF},
		     {"x.folded", OUTPUT_FOLDED},
		     {"x.json", OUTPUT_JSON},
		     {"x.svg", OUTPUT_SVG},
		     {"x.png", -1},
		     {".html", -1},
		     {"html", -1},
		     {"", -1}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err e = {0};
		enum output_form form = OUTPUT_HTML;
		int ret = output_form_of(cases[i].path, &form, &e);

		assert_int_equal(ret ? -1 : (int)form, cases[i].form);
		assert_int_equal(e.exit, ret ? EXIT_USAGE : 0);
	}
}

static char *folder(void)
{
	static char dir[] = "/tmp/sonde-outfile-XXXXXX";

	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	return dir;
}

TEST(what_was_not_committed_leaves_the_old_file)
{
	char *dir = folder(), path[64], text[16] = "";
	struct outfile o;
	uint64_t bytes = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/x.json", dir);
	assert_int_equal(outfile_open(&o, path, NULL), 0);
	fputs("old", o.f);
	assert_int_equal(outfile_commit(&o, &bytes, NULL), 0);
	assert_int_equal(bytes, 3);
	outfile_release(&o);
	assert_int_equal(outfile_open(&o, path, NULL), 0);
	fputs("half", o.f);
	outfile_release(&o);
	f = fopen(path, "r");
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_string_equal(text, "old");
	unlink(path);
	assert_int_equal(rmdir(dir), 0); /* nothing else was left behind */
}

TEST(a_full_disk_is_said)
{
	struct outfile o;
	struct err e = {0};

	assert_int_equal(outfile_open(&o, "/dev/full", &e), 0);
	fputs("x", o.f);
	assert_int_equal(outfile_commit(&o, NULL, &e), -ENOSPC);
	assert_non_null(strstr(e.what, "/dev/full: No space left"));
	assert_string_not_equal(e.fix, "");
	outfile_release(&o);
	assert_int_equal(access("/dev/full", F_OK), 0);
}

TEST(a_link_is_written_through_and_kept)
{
	char *dir = folder(), path[64], target[64];
	struct stat st;
	struct outfile o;

	snprintf(path, sizeof(path), "%s/link.json", dir);
	snprintf(target, sizeof(target), "%s/target", dir);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(outfile_open(&o, path, NULL), 0);
	fputs("x", o.f);
	assert_int_equal(outfile_commit(&o, NULL, NULL), 0);
	outfile_release(&o);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat(target, &st), 0);
	assert_int_equal(st.st_size, 1);
	unlink(path);
	unlink(target);
	rmdir(dir);
}

TEST(a_missing_folder_is_said)
{
	struct outfile o;
	struct err e = {0};

	assert_int_equal(outfile_open(&o, "/nowhere/at/all/x.html", &e), -ENOENT);
	assert_non_null(strstr(e.what, "/nowhere/at/all/x.html"));
}
