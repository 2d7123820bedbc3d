/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/index/unwind/rowprint.h"
#include "schema/base/cleanup.h"
#include "schema/image/format.h"
#include "schema/image/image.h"
#include "schema/image/lines.h"
#include "schema/image/tls.h"

static int open_index(const char *path, struct image **img, struct err *e)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return err_set(e, -errno, EXIT_USAGE, "cannot open %s: %s", path, strerror(errno));
	return image_open_fd(fd, img, e);
}

static int flush(struct err *e)
{
	return fflush(stdout) ?
		       err_set(e, -EIO, EXIT_RUNTIME, "cannot write: %s", strerror(errno)) :
		       0;
}

static void print_identity(const struct image *img)
{
	const struct image_ident *id = image_ident(img);
	const struct image_lines_size size = image_lines_size(img);

	printf("# build-id ");
	for (size_t i = 0; i < id->build_id_len; i++)
		printf("%02x", id->build_id[i]);
	printf("\n# content %016" PRIx64
	       "\n# machine %u\n# go %s\n# debug-file %s\n# symbols %zu\n",
	       id->content_hash, id->machine, id->go ? "yes" : "no",
	       id->from_debug_file ? "yes" : "no", image_symbol_count(img));
	printf("# lines %zu rows, %zu bytes, %zu files\n# inlines %zu rows, %zu bytes\n", size.rows,
	       size.row_bytes, size.files, size.inline_rows, size.inline_bytes);
	if (image_lines_note(img))
		printf("# lines-note %s\n", image_lines_note(img));
}

int dump_symbols(const char *path, struct err *e)
{
	struct image *img = NULL;
	struct image_symbol s;
	int rc = open_index(path, &img, e);

	if (rc)
		return rc;
	print_identity(img);
	for (size_t i = 0; image_symbol_get(img, i, &s); i++)
		printf("%016" PRIx64 " %" PRIx64 " %s\n", s.addr, s.size, s.name);
	image_close(img);
	return flush(e);
}

static void print_frames(const struct image *img, uint64_t vaddr)
{
	struct image_source_frame frames[IMAGE_INLINE_DEPTH_MAX + 1];
	size_t n = image_lines_at(img, vaddr, frames, IMAGE_INLINE_DEPTH_MAX + 1);
	struct image_symbol s;

	if (!n)
		frames[n++] = (struct image_source_frame){0};
	for (size_t i = 0; i < n; i++) {
		const char *function = frames[i].function;

		if (!function)
			function = image_symbol_at(img, vaddr, &s) ? s.name : "??";
		printf("%s\n%s:%" PRIu32 ":%" PRIu32 "\n", function,
		       frames[i].file ? frames[i].file : "??", frames[i].line, frames[i].column);
	}
	putchar('\n');
}

int dump_lines(const char *path, struct err *e)
{
	struct image *img = NULL;
	char line[64];
	int rc = open_index(path, &img, e);

	if (rc)
		return rc;
	while (fgets(line, sizeof(line), stdin))
		print_frames(img, strtoull(line, NULL, 16));
	image_close(img);
	return flush(e);
}

int dump_rows(const char *path, struct err *e)
{
	struct image *img = NULL;
	const void *data = NULL;
	size_t size = 0;
	int rc = open_index(path, &img, e);

	if (rc)
		return rc;
	if (image_unwind(img, &data, &size) && !rowprint_table(stdout, data, size))
		rc = err_set(e, -EBADMSG, EXIT_RUNTIME,
			     "cannot print the rows of %s: another version made them", path);
	image_close(img);
	return rc ? rc : flush(e);
}

/* ---- the sites of TLS ---- */

static const char *const REGISTERS[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
static const char *const LIBRARIES[] = {"?", "openssl", "gnutls", "go", "rustls", "boringssl"};
static const char *const ROLES[] = {"blind", "entry", "result", "forget"};
static const char *const CONDITIONS[] = {"o", "no", "b", "ae", "e", "ne", "be", "a",
					 "s", "ns", "p", "np", "l", "ge", "le", "g"};

static void print_entry(FILE *to, const struct image_tls_site *s)
{
	fprintf(to, " connection %s buffer %s size %s", REGISTERS[s->args[0]],
		REGISTERS[s->args[1]], REGISTERS[s->args[2]]);
	if (s->args[3] < 16)
		fprintf(to, " count-at %s", REGISTERS[s->args[3]]);
	for (unsigned i = 0; i < 2; i++)
		if (s->check_reg[i] < 16)
			fprintf(to, " if %s = %u", REGISTERS[s->check_reg[i]], s->check_value[i]);
}

static void print_value(FILE *to, const struct image_tls_value *v)
{
	if (v->place == IMAGE_TLS_REGISTER)
		fprintf(to, "%s:%u", REGISTERS[v->reg], v->bytes);
	else if (v->place == IMAGE_TLS_STACK)
		fprintf(to, "%" PRId32 "(rsp):%u", v->at, v->bytes);
	else
		fprintf(to, "%" PRId32, v->at);
}

static void print_result(FILE *to, const struct image_tls_site *s)
{
	fputc(' ', to);
	fputs(s->result == IMAGE_TLS_LENGTH  ? "length " :
	      s->result == IMAGE_TLS_POINTER ? "well " :
	      s->result == IMAGE_TLS_RECORD  ? "record " :
					       "pair ",
	      to);
	print_value(to, &s->value[0]);
	if (s->value[1].place != IMAGE_TLS_NOWHERE) {
		fputs(s->result == IMAGE_TLS_PAIR ? ", " : " + ", to);
		print_value(to, &s->value[1]);
	}
	if (s->when != IMAGE_TLS_ALWAYS)
		fprintf(to, " if %s%s", s->when == IMAGE_TLS_TAKEN ? "" : "not ",
			CONDITIONS[s->condition]);
}

static void tlsprint_sites(FILE *to, const struct image_tls_site *sites, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct image_tls_site *s = &sites[i];

		fprintf(to, "%" PRIx64 " %u %s %s %s", s->offset, s->length,
			s->library < 6 ? LIBRARIES[s->library] : LIBRARIES[0],
			s->operation == IMAGE_TLS_READ ? "read" : "write",
			ROLES[s->role < 4 ? s->role : 0]);
		if (s->role == IMAGE_TLS_FORGET)
			fprintf(to, " connection %s", REGISTERS[s->args[0]]);
		if (s->role == IMAGE_TLS_ENTRY)
			print_entry(to, s);
		if (s->role == IMAGE_TLS_RESULT)
			print_result(to, s);
		fputs(s->slow ? " slow\n" : "\n", to);
	}
}

int dump_tls(const char *path, struct err *e)
{
	const struct image_tls_site *sites = NULL;
	struct image *img = NULL;
	size_t count;
	int rc = open_index(path, &img, e);

	if (rc)
		return rc;
	count = image_tls(img, &sites);
	tlsprint_sites(stdout, sites, count);
	image_close(img);
	return flush(e);
}
