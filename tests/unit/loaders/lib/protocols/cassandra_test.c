/* SPDX-License-Identifier: Apache-2.0 */
/* cassandra: envelopes and frames as in native_protocol_v4.spec and v5.spec. */
#include "tests/unit/loaders/lib/protocols/talk.h"

static void streams_are_answered_in_any_order_and_ids_name_statements(void **state)
{
	static const struct turn turns[] = {
		C("\x04\x00\x00\x00\x01\x00\x00\x00\x16\x00\x01\x00\x0b"
		  "CQL_VERSION\x00\x05"
		  "3.0.0"),
		S("\x84\x00\x00\x00\x02\x00\x00\x00\x00"),
		C("\x04\x00\x00\x05\x07\x00\x00\x00"
		  "7\x00\x00\x00"
		  "0SELECT * FROM ks.t WHERE id"
		  " = 'x' AND n IN (1,2)\x00\x01\x00"
		  "\x04\x00\x00\x06\x09\x00\x00\x00 \x00\x00\x00\x1cINSERT INTO t (a) VALUES (\?"
		  ")"),
		S("\x84\x00\x00\x06\x08\x00\x00\x00\x1e\x00\x00\x00\x04\x00\x10IDIDIDIDIDIDIDID\x00\x00\x00\x00\x00\x00\x00\x00"
		  "\x84\x00\x00\x05\x08\x00\x00\x00\x18\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
		C("\x04\x00\x00\x07\n\x00\x00\x00\x15\x00\x10IDIDIDIDIDIDIDID\x00\x01\x00"
		  "\x04\x00\x00\x08\r\x00\x00\x00\x18\x00\x00\x02\x01\x00\x10IDIDIDIDIDIDIDID\x00\x00"
		  "\x04\x00\x00\x09\n\x00\x00\x00\x0c\x00\x07unknown\x00\x01\x00"),
		S("\x84\x00\x00\x08\x00\x00\x00\x00\x07\x00\x00\x11\x00\x00\x01x"
		  "\x84\x00\x00\x07\x08\x00\x00\x00\x04\x00\x00\x00\x01"
		  "\x84\x00\x00\x09\x08\x00\x00\x00\x04\x00\x00\x00\x01"),
		END};

	(void)state;
	talk_expect(turns, "cassandra",
		    "STARTUP ok\n"
		    "PREPARE INSERT INTO t (a) VALUES (?) ok\n"
		    "SELECT * FROM ks.t WHERE id = ? AND n IN (?) ok\n"
		    "BATCH of INSERT INTO t (a) VALUES (?) and others error 0x1100\n"
		    "INSERT INTO t (a) VALUES (?) ok\n"
		    "<prepared> ok\n");
}

static void version_5_puts_envelopes_into_frames(void **state)
{
	static const struct turn turns[] = {
		C("\x05\x00\x00\x00\x01\x00\x00\x00\x16\x00\x01\x00\x0b"
		  "CQL_VERSION\x00\x05"
		  "3.0.0"),
		S("\x85\x00\x00\x00\x02\x00\x00\x00\x00"),
		C("i\x00\x02"
		  "CRC\x05\x00\x00\x05\x07\x00\x00\x00"
		  "7\x00\x00\x00"
		  "0SELECT * FROM ks.t WH"
		  "ERE id = 'x' AND n IN (1,2)\x00\x01\x00\x05\x00\x00\x06\x09\x00\x00\x00 \x00"
		  "\x00\x00\x1cINSERT INTO t (a) VALUES (\?)CRCC"),
		S("H\x00\x02"
		  "CRC\x85\x00\x00\x06\x08\x00\x00\x00\x1e\x00\x00\x00\x04\x00\x10IDIDIDIDIDIDIDID\x00\x00\x00"
		  "\x00\x00\x00\x00\x00\x85\x00\x00\x05\x08\x00\x00\x00\x18\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
		  "CR"
		  "CC"),
		C("T\x00\x02"
		  "CRC\x05\x00\x00\x07\n\x00\x00\x00\x15\x00\x10IDIDIDIDIDIDIDID\x00\x01\x00\x05\x00\x00\x08"
		  "\r\x00\x00\x00\x18\x00\x00\x02\x01\x00\x10IDIDIDIDIDIDIDID\x00\x00\x05\x00\x00\x09\n\x00\x00\x00\x0c\x00\x07"
		  "unknown\x00\x01\x00"
		  "CRCC"),
		S("*\x00\x02"
		  "CRC\x85\x00\x00\x08\x00\x00\x00\x00\x07\x00\x00\x11\x00\x00\x01x\x85\x00\x00\x07\x08\x00\x00\x00\x04\x00\x00\x00\x01\x85\x00\x00\x09\x08"
		  "\x00\x00\x00\x04\x00\x00\x00\x01"
		  "CRCC"),
		END};

	(void)state;
	talk_expect(turns, "cassandra",
		    "STARTUP ok\n"
		    "PREPARE INSERT INTO t (a) VALUES (?) ok\n"
		    "SELECT * FROM ks.t WHERE id = ? AND n IN (?) ok\n"
		    "BATCH of INSERT INTO t (a) VALUES (?) and others error 0x1100\n"
		    "INSERT INTO t (a) VALUES (?) ok\n"
		    "<prepared> ok\n");
}

static void compressed_frames_are_blind_to_the_byte(void **state)
{
	static const struct turn turns[] = {C("\x05\x00\x00\x00\x01\x00\x00\x00\x28\x00\x02\x00\x0b"
					      "CQL_VERSION\x00\x05"
					      "3.0.0\x00\x0b"
					      "COMPRESSION\x00\x03lz4"),
					    S("\x85\x00\x00\x00\x02\x00\x00\x00\x00"),
					    C("0123456789abcdef"), S("0123456789"), END};
	struct talk *t = malloc(sizeof(*t));

	(void)state;
	talk_begin(t, true, false, 0, PROTO_MASKED);
	talk_play(t, turns, SIZE_MAX / 2, SIZE_MAX);
	assert_string_equal(t->heard.text, "STARTUP ok\n");
	assert_int_equal(proto_conn_blind_bytes(t->conn), 26);
	talk_end(t, true);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_are_answered_in_any_order_and_ids_name_statements),
		cmocka_unit_test(version_5_puts_envelopes_into_frames),
		cmocka_unit_test(compressed_frames_are_blind_to_the_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
