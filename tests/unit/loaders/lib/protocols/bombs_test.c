/* SPDX-License-Identifier: Apache-2.0 */
/* Bombs: whatever a peer makes large, deep or numerous, the memory of the parsers stays bounded. */
#include "tests/unit/loaders/lib/protocols/talk.h"

/* of one connection: two buffers of 64 KiB, and what a protocol holds */
#define MOST (512u << 10)

static struct talk *begin(size_t *before)
{
	struct talk *t = malloc(sizeof(*t));

	talk_begin(t, true, false, 0, PROTO_MASKED);
	*before = mallinfo2().uordblks + (size_t)mallinfo2().hblkhd;
	return t;
}

static void end(struct talk *t, size_t before, size_t most)
{
	size_t now = mallinfo2().uordblks + (size_t)mallinfo2().hblkhd;

	assert_true(now < before + most);
	talk_end(t, true);
	free(t);
}

TEST(a_chunk_of_all_numbers_and_an_endless_line_of_it)
{
	static const char ask
		[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
	     head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	     big[] = "ffffffffffffffff\r\nx",
	     line[] =
		     "1;a=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
	size_t before;
	struct talk *t;

	for (int endless = 0; endless < 2; endless++) {
		t = begin(&before);
		talk_say(t, 'c', ask, sizeof(ask) - 1, SIZE_MAX);
		talk_say(t, 's', head, sizeof(head) - 1, SIZE_MAX);
		for (int i = 0; i < 100000; i++)
			talk_say(t, 's', endless ? line : big,
				 endless ? sizeof(line) - 1 : sizeof(big) - 1, SIZE_MAX);
		end(t, before, MOST);
	}
}

/* A table of the size that the client asks for, and headers that all stay in it. */
TEST(a_table_of_headers_without_end)
{
	static const char begun[] =
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x01\x7f\xff\xff\xff";
	size_t before;
	struct talk *t;

	t = begin(&before);
	talk_say(t, 'c', begun, sizeof(begun) - 1, SIZE_MAX);
	talk_say(t, 's', "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x01\x7f\xff\xff\xff", 15,
		 SIZE_MAX);
	for (uint32_t i = 0; i < 20000; i++) {
		char frame[9 + 6 + 2 + 101], *p = frame;
		size_t body = sizeof(frame) - 9;

		memset(frame, 'x', sizeof(frame));
		*p++ = (char)(body >> 16), *p++ = (char)(body >> 8), *p++ = (char)body;
		*p++ = 1, *p++ = 5;
		*p++ = (char)((2 * i + 1) >> 24), *p++ = (char)((2 * i + 1) >> 16),
		*p++ = (char)((2 * i + 1) >> 8), *p++ = (char)(2 * i + 1);
		memcpy(p, "\x3f\xe0\xff\xff\x7f\x82", 6); /* the table's size, a method */
		p += 6;
		*p++ = 0x44, *p++ = 101; /* a path of 101 bytes, to be kept */
		snprintf(p, 12, "/%u", i);
		p[strlen(p)] = 'x';
		talk_say(t, 'c', frame, sizeof(frame), SIZE_MAX);
	}
	assert_non_null(strstr(t->heard.text, "GET /")); /* they are understood */
	end(t, before, 4u << 20);                        /* 16 384 open questions with it */
}

/* Each name once: those beyond PROTO_OPERATIONS share one. */
TEST(a_million_topics)
{
	static const char connect[] = "\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01"
				      "a",
			  ok[] = "\x20\x02\x00\x00";
	size_t before;
	struct talk *t;

	t = begin(&before);
	talk_say(t, 'c', connect, sizeof(connect) - 1, SIZE_MAX);
	talk_say(t, 's', ok, sizeof(ok) - 1, SIZE_MAX);
	for (int i = 0; i < 1000000; i++) {
		char said[40];
		/* letters alone: what looks like a number would be {id} */
		int n = snprintf(said + 4, sizeof(said) - 4, "t%c%c%c%c%c", 'a' + i % 26,
				 'a' + i / 26 % 26, 'a' + i / 676 % 26, 'a' + i / 17576 % 26,
				 'a' + i / 456976 % 26);

		said[0] = 0x30;
		said[1] = (char)(n + 2);
		said[2] = 0;
		said[3] = (char)n;
		talk_say(t, 'c', said, (size_t)n + 4, SIZE_MAX);
		t->heard.len = 0;
	}
	end(t, before, 4u << 20); /* the names */
}
