/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of indexproto.h with a real sandboxed child: a usual file gives its index, a hostile
 * one costs only its own names. Each test forks, puts descriptors 3 to 5 in place and runs
 * child_main; the test is the parent.
 */
#include "tests/unit/loaders/index/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/index/child.h"
#include "loaders/lib/host/maps/indexproto.h"
#include "tests/unit/loaders/index/elfmaker.h"

static const char strings[] = "\0alpha";

struct talk {
	int sock;
	int out;
	pid_t pid;
};

static struct talk talk_start(int elf)
{
	struct talk t = {.out = memfd_create("out", MFD_CLOEXEC)};
	struct timeval patience = {.tv_sec = 30};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
			 0);
	t.sock = pair[0];
	t.pid = fork();
	if (t.pid == 0) {
		int s = fcntl(pair[1], F_DUPFD, 20), e = fcntl(elf, F_DUPFD, 20),
		    o = fcntl(t.out, F_DUPFD, 20);

		dup2(s, INDEX_FD_SOCKET);
		dup2(e, INDEX_FD_ELF);
		dup2(o, INDEX_FD_OUT);
		close_range(INDEX_FD_OUT + 1, ~0u, 0);
		_exit(child_main(INDEX_LINES_SOON, false));
	}
	close(pair[1]);
	return t;
}

static struct index_msg talk_hear(struct talk *t)
{
	struct index_msg m = {0};

	assert_int_equal(recv(t->sock, &m, sizeof(m), 0), sizeof(m));
	return m;
}

static void talk_answer_none(struct talk *t)
{
	const struct index_msg m = {.type = INDEX_MSG_FILE};

	assert_int_equal(send(t->sock, &m, sizeof(m), 0), sizeof(m));
}

/* Answers every question with "none"; returns the child's last message. */
static struct index_msg talk_finish(struct talk *t, int *status)
{
	struct index_msg m;

	for (m = talk_hear(t); m.type != INDEX_MSG_DONE; m = talk_hear(t))
		talk_answer_none(t);
	assert_int_equal(waitpid(t->pid, status, 0), t->pid);
	close(t->sock);
	return m;
}

static int file_of(const void *data, size_t len)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_int_equal(write(fd, data, len), (ssize_t)len);
	return fd;
}

static void library(struct elfmaker *m)
{
	const Elf64_Sym syms[] = {{0}, maker_symbol(1, STB_GLOBAL, STT_FUNC, MAKER_TEXT, 16)};

	maker_library(m, 64, syms, 2, strings, sizeof(strings));
}

TEST(a_file_becomes_an_index_and_a_key)
{
	struct elfmaker m;
	struct image *img = NULL;
	struct image_symbol s;
	struct index_msg done;
	struct talk t;
	int elf, status;

	library(&m);
	maker_finish(&m);
	elf = file_of(m.bytes.buf, m.bytes.len);
	maker_release(&m);
	t = talk_start(elf);
	done = talk_finish(&t, &status);
	assert_int_equal(done.status, 0);
	assert_int_equal(strncmp(done.name, "nobuildid-", 10), 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(image_open_fd(t.out, &img, NULL), 0);
	assert_true(image_symbol_at(img, MAKER_TEXT + 3, &s));
	assert_string_equal(s.name, "alpha");
	image_close(img);
	close(t.out);
	close(elf);
}

TEST(what_is_no_elf_file_is_refused_with_a_reason)
{
	struct index_msg done;
	struct talk t;
	int status, elf = file_of("#!/bin/sh\n", 10);

	t = talk_start(elf);
	done = talk_finish(&t, &status);
	assert_int_equal(done.status, -ENOEXEC);
	assert_string_equal(done.name, "not an ELF file");
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_int_equal(lseek(t.out, 0, SEEK_END), 0);
	close(t.out);
	close(elf);
}

TEST(a_file_truncated_while_it_is_read_is_refused)
{
	static const char link[12] = "x.debug\0\1\2\3\4";
	const Elf64_Sym syms[] = {{0}, maker_symbol(1, STB_GLOBAL, STT_FUNC, MAKER_TEXT, 16)};
	struct index_msg m2, done;
	struct elfmaker m;
	struct talk t;
	int elf, status;

	maker_library(&m, 64, NULL, 0, NULL, 0);
	maker_section(&m, ".gnu_debuglink", SHT_PROGBITS, 0, link, sizeof(link));
	maker_section(&m, ".dynsym", SHT_DYNSYM, SHF_ALLOC, syms, sizeof(syms))->sh_link = 4;
	maker_section(&m, ".dynstr", SHT_STRTAB, SHF_ALLOC, strings, sizeof(strings));
	maker_finish(&m);
	elf = file_of(m.bytes.buf, m.bytes.len);
	maker_release(&m);
	t = talk_start(elf);
	m2 = talk_hear(&t); /* it waits for the debug file: the headers are read, .dynsym is not */
	assert_int_equal(m2.type, INDEX_MSG_WANT_DEBUGLINK);
	assert_string_equal(m2.name, "x.debug");
	assert_int_equal(ftruncate(elf, 100), 0);
	talk_answer_none(&t);
	done = talk_finish(&t, &status);
	assert_int_equal(done.status, -ESTALE);
	assert_true(WIFEXITED(status));
	close(t.out);
	close(elf);
}

/* 100 GB of zeros behind a real header, and tables that claim all of it. */
TEST(a_sparse_file_of_a_hundred_gigabytes_ends_soon)
{
	struct index_msg done;
	struct elfmaker m;
	struct talk t;
	int elf, status;

	library(&m);
	m.sections[2].sh_size = 90ull << 30; /* .symtab */
	m.sections[3].sh_size = 90ull << 30; /* .strtab */
	maker_section(&m, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, "x", 1)->sh_size = 90ull << 30;
	m.segments[0].p_filesz = m.segments[0].p_memsz = 99ull << 30;
	maker_finish(&m);
	elf = file_of(m.bytes.buf, m.bytes.len);
	maker_release(&m);
	assert_int_equal(ftruncate(elf, 100ll << 30), 0);
	t = talk_start(elf);
	done = talk_finish(&t, &status);
	assert_true(WIFEXITED(status));
	assert_int_equal(done.status, 0); /* a sound file, whose tables are too big to be read */
	close(t.out);
	close(elf);
}

/* A file of the largest size allowed, all of it code symbols whose names must be demangled: memory
 * and time are bounded. */
TEST(seven_million_symbols_cost_at_most_their_own_names)
{
	const size_t count = 7000000;
	Elf64_Sym *syms = calloc(count, sizeof(*syms));
	static const char names[] = "\0_ZN3foo3barERKSt6vectorIiSaIiEE";
	struct index_msg done = {0};
	struct elfmaker m;
	struct talk t;
	int elf, status;
	ssize_t n;

	for (size_t i = 1; i < count; i++)
		syms[i] = maker_symbol(1, STB_GLOBAL, STT_FUNC, MAKER_TEXT + (i * 7919) % 60000000,
				       1 + i % 100);
	maker_library(&m, 64, syms, count, names, sizeof(names));
	m.sections[1].sh_size = 60000000;
	m.segments[0].p_filesz = m.segments[0].p_memsz = 61000000;
	maker_finish(&m);
	elf = file_of(m.bytes.buf, m.bytes.len);
	maker_release(&m);
	free(syms);
	t = talk_start(elf);
	do {
		n = recv(t.sock, &done, sizeof(done), 0);
		if (n == sizeof(done) && done.type != INDEX_MSG_DONE)
			talk_answer_none(&t);
	} while (n == sizeof(done) && done.type != INDEX_MSG_DONE);
	assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
	/* it ends by itself or at its own limits, never at the test's */
	assert_true(n >= 0);
	close(t.sock);
	close(t.out);
	close(elf);
}

/* 512 MB of zeros in 80 KB: it is unpacked up to the limit, then left alone; the other names stay.
 */
TEST(a_compressed_bomb_costs_only_what_it_held)
{
	const Elf64_Sym syms[] = {{0}, maker_symbol(1, STB_GLOBAL, STT_FUNC, MAKER_TEXT, 16)};
	const size_t zeros_len = 64 << 20;
	uint8_t *zeros = calloc(1, zeros_len), *packed = malloc(1 << 20);
	lzma_stream s = LZMA_STREAM_INIT;
	struct image *img = NULL;
	struct image_symbol sym;
	struct index_msg done;
	struct elfmaker m;
	struct talk t;
	int elf, status;

	assert_int_equal(lzma_easy_encoder(&s, 0, LZMA_CHECK_CRC32), LZMA_OK);
	s.next_out = packed;
	s.avail_out = 1 << 20;
	for (int i = 0; i < 8; i++) {
		s.next_in = zeros;
		s.avail_in = zeros_len;
		assert_true(lzma_code(&s, i < 7 ? LZMA_RUN : LZMA_FINISH) <= LZMA_STREAM_END);
	}
	maker_library(&m, 64, NULL, 0, NULL, 0);
	maker_section(&m, ".dynsym", SHT_DYNSYM, SHF_ALLOC, syms, sizeof(syms))->sh_link = 3;
	maker_section(&m, ".dynstr", SHT_STRTAB, SHF_ALLOC, strings, sizeof(strings));
	maker_section(&m, ".gnu_debugdata", SHT_PROGBITS, 0, packed, (size_t)s.total_out);
	maker_finish(&m);
	lzma_end(&s);
	elf = file_of(m.bytes.buf, m.bytes.len);
	maker_release(&m);
	t = talk_start(elf);
	done = talk_finish(&t, &status);
	assert_int_equal(done.status, 0);
	assert_int_equal(image_open_fd(t.out, &img, NULL), 0);
	assert_true(image_symbol_at(img, MAKER_TEXT, &sym));
	assert_string_equal(sym.name, "alpha");
	image_close(img);
	close(t.out);
	close(elf);
	free(zeros);
	free(packed);
}

TEST(a_parent_that_goes_away_ends_the_child)
{
	static const char link[12] = "x.debug\0\1\2\3\4";
	struct elfmaker m;
	struct talk t;
	int elf, status;

	maker_library(&m, 64, NULL, 0, NULL, 0);
	maker_section(&m, ".gnu_debuglink", SHT_PROGBITS, 0, link, sizeof(link));
	maker_finish(&m);
	elf = file_of(m.bytes.buf, m.bytes.len);
	maker_release(&m);
	t = talk_start(elf);
	talk_hear(&t);
	close(t.sock);
	assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	close(t.out);
	close(elf);
}
