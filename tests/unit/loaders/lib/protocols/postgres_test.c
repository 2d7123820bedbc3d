/* SPDX-License-Identifier: Apache-2.0 */
/* postgres: messages as in PostgreSQL's manual, "Message Formats". */
#include "tests/unit/loaders/lib/protocols/talk.h"
#include "tests/unit/test.h"

TEST(a_query_has_its_literals_masked_and_an_error_its_sqlstate)
{
	static const struct turn turns[] = {C("\x00\x00\x00\x10\x00\x03\x00\x00user\x00u\x00\x00"),
					    S("R\x00\x00\x00\x08\x00\x00\x00\x00"
					      "S\x00\x00\x00\x08"
					      "a\x00"
					      "b\x00"
					      "K\x00\x00\x00\x0c"
					      "12345678"
					      "Z\x00\x00\x00\x05I"),
					    C("Q\x00\x00\x00"
					      "BSELECT * FROM t WHERE a IN (1, 2, -"
					      "3) AND b = 'it''s' /* x */\x00"),
					    S("T\x00\x00\x00\x06\x00\x00"
					      "D\x00\x00\x00\x06\x00\x00"
					      "C\x00\x00\x00\rSELECT 1\x00"
					      "Z\x00\x00\x00\x05I"),
					    C("Q\x00\x00\x00\x0fselect 1/0\x00"),
					    S("E\x00\x00\x00\x16SERROR\x00"
					      "C22012\x00Mx\x00\x00"
					      "Z\x00\x00\x00\x05I"),
					    C("Q\x00\x00\x00\x18select 1; select 2;\x00"),
					    S("C\x00\x00\x00\rSELECT 1\x00"
					      "C\x00\x00\x00\rSELECT 1\x00"
					      "Z\x00\x00\x00\x05I"),
					    END};

	talk_expect(turns, "postgres",
		    "CONNECT ok\n"
		    "SELECT * FROM t WHERE a IN (?) AND b = ? ok\n"
		    "select ?/? error 22012\n"
		    "select ?; select ? ok\n");
}

TEST(an_execute_is_named_by_the_statement_that_its_portal_is_bound_to)
{
	static const struct turn turns[] = {
		C("\x00\x00\x00\x10\x00\x03\x00\x00user\x00u\x00\x00"),
		S("R\x00\x00\x00\x08\x00\x00\x00\x00"
		  "S\x00\x00\x00\x08"
		  "a\x00"
		  "b\x00"
		  "K\x00\x00\x00\x0c"
		  "12345678"
		  "Z\x00\x00\x00\x05I"),
		C("P\x00\x00\x00\x13st\x00SELECT $1\x00\x00\x00"
		  "S\x00\x00\x00\x04"),
		S("1\x00\x00\x00\x04"
		  "Z\x00\x00\x00\x05I"),
		C("B\x00\x00\x00\x0e\x00st\x00\x00\x00\x00\x00\x00\x00"
		  "D\x00\x00\x00\x06P\x00"
		  "E\x00\x00\x00\x09\x00\x00\x00\x00\x00"
		  "S\x00\x00\x00\x04"),
		S("2\x00\x00\x00\x04"
		  "n\x00\x00\x00\x04"
		  "C\x00\x00\x00\rSELECT 1\x00"
		  "Z\x00\x00\x00\x05I"),
		C("P\x00\x00\x00\x10\x00SELECT 2\x00\x00\x00"
		  "B\x00\x00\x00\x0epo\x00\x00\x00\x00\x00\x00\x00\x00"
		  "E\x00\x00\x00\x0bpo\x00\x00\x00\x00\x00"
		  "B\x00\x00\x00\x10\x00gone\x00\x00\x00\x00\x00\x00\x00"
		  "E\x00\x00\x00\x09\x00\x00\x00\x00\x00"
		  "S\x00\x00\x00\x04"),
		S("1\x00\x00\x00\x04"
		  "2\x00\x00\x00\x04"
		  "C\x00\x00\x00\rSELECT 1\x00"
		  "2\x00\x00\x00\x04"
		  "s\x00\x00\x00\x04"
		  "Z\x00\x00\x00\x05I"),
		C("C\x00\x00\x00\x08Sst\x00"
		  "S\x00\x00\x00\x04"),
		S("3\x00\x00\x00\x04"
		  "Z\x00\x00\x00\x05I"),
		END};

	talk_expect(turns, "postgres",
		    "CONNECT ok\n"
		    "PREPARE SELECT ? ok\n"
		    "SELECT ? ok\n"
		    "SELECT ? ok\n"
		    "<prepared gone> ok\n"
		    "CLOSE ok\n");
}

TEST(after_an_error_the_rest_of_a_batch_is_skipped_and_the_next_is_not)
{
	static const struct turn turns[] = {C("\x00\x00\x00\x10\x00\x03\x00\x00user\x00u\x00\x00"),
					    S("R\x00\x00\x00\x08\x00\x00\x00\x00"
					      "S\x00\x00\x00\x08"
					      "a\x00"
					      "b\x00"
					      "K\x00\x00\x00\x0c"
					      "12345678"
					      "Z\x00\x00\x00\x05I"),
					    C("P\x00\x00\x00\x09\x00"
					      "A\x00\x00\x00"
					      "B\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x00"
					      "E\x00\x00\x00\x09\x00\x00\x00\x00\x00"
					      "P\x00\x00\x00\x09\x00"
					      "B\x00\x00\x00"
					      "B\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x00"
					      "E\x00\x00\x00\x09\x00\x00\x00\x00\x00"
					      "P\x00\x00\x00\x09\x00"
					      "D\x00\x00\x00"
					      "B\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x00"
					      "E\x00\x00\x00\x09\x00\x00\x00\x00\x00"
					      "S\x00\x00\x00\x04"
					      "P\x00\x00\x00\x09\x00"
					      "F\x00\x00\x00"
					      "B\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x00"
					      "E\x00\x00\x00\x09\x00\x00\x00\x00\x00"
					      "S\x00\x00\x00\x04"),
					    S("1\x00\x00\x00\x04"
					      "2\x00\x00\x00\x04"
					      "C\x00\x00\x00\x06X\x00"
					      "1\x00\x00\x00\x04"
					      "E\x00\x00\x00\x16SERROR\x00"
					      "C23505\x00Mx\x00\x00"
					      "Z\x00\x00\x00\x05I"
					      "1\x00\x00\x00\x04"
					      "2\x00\x00\x00\x04"
					      "C\x00\x00\x00\x06X\x00"
					      "Z\x00\x00\x00\x05I"),
					    END};

	talk_expect(turns, "postgres",
		    "CONNECT ok\n"
		    "A ok\n"
		    "B error 23505\n"
		    "D error skipped\n"
		    "F ok\n");
}

TEST(copy_and_notices_belong_to_their_query)
{
	static const struct turn turns[] = {C("\x00\x00\x00\x10\x00\x03\x00\x00user\x00u\x00\x00"),
					    S("R\x00\x00\x00\x08\x00\x00\x00\x00"
					      "S\x00\x00\x00\x08"
					      "a\x00"
					      "b\x00"
					      "K\x00\x00\x00\x0c"
					      "12345678"
					      "Z\x00\x00\x00\x05I"),
					    C("Q\x00\x00\x00\x16"
					      "COPY t FROM STDIN\x00"),
					    S("G\x00\x00\x00\x07\x00\x00\x00"),
					    C("d\x00\x00\x00\nQ\x00\x00\x00\x05x"
					      "c\x00\x00\x00\x04"),
					    S("N\x00\x00\x00\rSNOTICE\x00\x00"
					      "C\x00\x00\x00\x0b"
					      "COPY 1\x00"
					      "Z\x00\x00\x00\x05I"),
					    S("A\x00\x00\x00\x0c\x00\x00\x00\x01"
					      "ch\x00\x00"),
					    C("Q\x00\x00\x00\x05\x00"),
					    S("I\x00\x00\x00\x04"
					      "Z\x00\x00\x00\x05I"),
					    END};

	talk_expect(turns, "postgres",
		    "CONNECT ok\n"
		    "COPY t FROM STDIN ok\n"
		    "NOTIFICATION ch one-way\n"
		    "(empty) ok\n");
}

TEST(a_cancel_is_one_way_and_a_refused_start_an_error)
{
	static const struct turn turns[] = {
		C("\x00\x00\x00\x10\x04\xd2\x16.\x00\x00\x00\x01\x00\x00\x00\x02"), END};

	talk_expect(turns, "postgres", "CANCEL one-way\n");
}

TEST(the_server_refuses_and_tells_why)
{
	static const struct turn turns[] = {C("\x00\x00\x00\x08\x04\xd2\x16/"), S("N"),
					    C("\x00\x00\x00\x10\x00\x03\x00\x00user\x00u\x00\x00"),
					    S("E\x00\x00\x00\x16SERROR\x00"
					      "C28P01\x00Mx\x00\x00"),
					    END};

	talk_expect(turns, "postgres", "CONNECT error 28P01\n");
}

TEST(a_connection_in_the_middle_says_what_it_did_not_see_prepared)
{
	static const struct turn turns[] = {C("B\x00\x00\x00\x0e\x00s7\x00\x00\x00\x00\x00\x00\x00"
					      "E\x00\x00\x00\x09\x00\x00\x00\x00\x00"
					      "S\x00\x00\x00\x04"),
					    S("2\x00\x00\x00\x04"
					      "C\x00\x00\x00\x06X\x00"
					      "Z\x00\x00\x00\x05I"),
					    C("B\x00\x00\x00\x0e\x00s7\x00\x00\x00\x00\x00\x00\x00"
					      "E\x00\x00\x00\x09\x00\x00\x00\x00\x00"
					      "S\x00\x00\x00\x04"),
					    S("2\x00\x00\x00\x04"
					      "C\x00\x00\x00\x06X\x00"
					      "Z\x00\x00\x00\x05I"),
					    END};

	talk_expect_of(turns, "postgres",
		       "<prepared s7> blind\n"
		       "<prepared s7> ok\n",
		       false, false, 0, PROTO_MASKED);
}

TEST(statements_without_end_stay_bounded)
{
	struct talk *t = malloc(sizeof(*t));
	char m[64];

	talk_begin(t, true, false, 0, PROTO_MASKED);
	talk_say(t, 'c', "\0\0\0\x11\0\x03\0\0user\0u\0\0", 17, SIZE_MAX);
	for (unsigned i = 0; i < 100000; i++) {
		int n = snprintf(m + 5, sizeof(m) - 5, "s%u%cSELECT a%u%c%c%c", i, 0, i, 0, 0, 0);

		m[0] = 'P';
		m[1] = m[2] = m[3] = 0;
		m[4] = (char)(n + 4);
		talk_say(t, 'c', m, (size_t)n + 5, SIZE_MAX);
	}
	assert_true(proto_conn_memory(t->conn) < 4096);
	talk_end(t, true);
	free(t);
}

TEST(an_error_that_ends_the_connection_is_the_answer)
{
	static const struct turn turns[] = {
		C("\x00\x00\x00\x11\x00\x03\x00\x00user\x00"
		  "ann\x00"),
		S("R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I"),
		C("Q\x00\x00\x00\rselect 1\x00"),
		S("C\x00\x00\x00\rSELECT 1\x00Z\x00\x00\x00\x05I"),
		C("Q\x00\x00\x00\rselect 2\x00"),
		S("T\x00\x00\x00\x06\x00\x00"
		  "E\x00\x00\x00\x1dSFATAL\x00VFATAL\x00"
		  "C57P01\x00Mx\x00\x00"),
		END};

	talk_expect(turns, "postgres",
		    "CONNECT ok\n"
		    "select ? ok\n"
		    "select ? error 57P01\n");
}

TEST(the_last_word_of_a_server_is_an_answer_in_any_language)
{
	static const struct turn turns[] = {
		C("\x00\x00\x00\x11\x00\x03\x00\x00user\x00"
		  "ann\x00"),
		S("R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I"),
		C("Q\x00\x00\x00\rselect 2\x00"),
		S("E\x00\x00\x00\x13S\xd0\xa4\x00"
		  "C57P02\x00Mx\x00\x00"),
		END};

	talk_expect(turns, "postgres",
		    "CONNECT ok\n"
		    "select ? error 57P02\n");
}

TEST(a_notification_comes_at_any_time_and_replication_is_a_stream)
{
	static const struct turn turns[] = {
		C("\x00\x00\x00\x11\x00\x03\x00\x00user\x00"
		  "ann\x00"),
		S("R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I"),
		S("A\x00\x00\x00\x14\x00\x00\x00Mjobs\x00secret\x00"),
		C("Q\x00\x00\x00\rselect 1\x00"),
		S("A\x00\x00\x00\x14\x00\x00\x00Mjobs\x00secret\x00"
		  "C\x00\x00\x00\rSELECT 1\x00Z\x00\x00\x00"
		  "\x05I"),
		C("Q\x00\x00\x00\x1aSTART_REPLICATION 0/0\x00"),
		S("W\x00\x00\x00\x07\x00\x00\x00"),
		S("d\x00\x00\x00\x08w123"),
		C("d\x00\x00\x00\x08r123"),
		S("d\x00\x00\x00\x08w123"),
		END};

	talk_expect(turns, "postgres",
		    "CONNECT ok\n"
		    "NOTIFICATION jobs one-way\n"
		    "NOTIFICATION jobs one-way\n"
		    "select ? ok\n"
		    "START_REPLICATION ?/? opened\n");
}

TEST(a_server_may_refuse_in_place_of_an_answer_about_tls)
{
	static const struct turn turns[] = {C("\x00\x00\x00\x08\x04\xd2\x16/"),
					    S("E\x00\x00\x00\x1dSFATAL\x00VFATAL\x00"
					      "C53300\x00Mx\x00\x00"),
					    END};

	talk_expect(turns, "postgres", "CONNECT error 53300\n");
}
