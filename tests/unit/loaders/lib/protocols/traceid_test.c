/* SPDX-License-Identifier: Apache-2.0 */
/* traceid: trace headers as their specifications define them; any other header names no trace. */
#include "loaders/lib/protocols/traceid.h"
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"

static void names(enum traceid_form form, const char *value, const char *trace, uint64_t caller)
{
	struct traceid id = {0};

	assert_int_equal(traceid_read(form, (const uint8_t *)value, strlen(value), &id),
			 trace != NULL);
	if (!trace)
		return;
	assert_int_equal(id.n, strlen(trace));
	assert_memory_equal(id.text, trace, id.n);
	assert_int_equal(id.caller, caller);
}

TEST(each_form_has_its_trace_and_who_sent_it)
{
	names(TRACEID_W3C, "00-" TRACE "-" SPAN "-01", TRACE, 0xb7ad6b7169203331);
	names(TRACEID_B3, TRACE "-" SPAN "-1-05e3ac9a4f6e3b90", TRACE, 0xb7ad6b7169203331);
	names(TRACEID_B3, "64fe8b2a57d3eff7-e457b5a2e4d86bd1", "64fe8b2a57d3eff7",
	      0xe457b5a2e4d86bd1);
	names(TRACEID_UBER, TRACE ":" SPAN ":0:1", TRACE, 0xb7ad6b7169203331);
	names(TRACEID_UBER, "4bf92f3577b34da6%3Ab7ad6b71%3A0%3A1", "4bf92f3577b34da6", 0xb7ad6b71);
	names(TRACEID_PLAIN, "64fe8b2a57d3eff7", "64fe8b2a57d3eff7", 0);
	names(TRACEID_REQUEST, "7f2d1c9e-0b7a-4c55-9a6b-0a7f3e2d1c9e",
	      "7f2d1c9e-0b7a-4c55-9a6b-0a7f3e2d1c9e", 0);
	names(TRACEID_REQUEST, TRACE, TRACE, 0);
	names(TRACEID_SW8, "1-TRACEABC=-U0VH-3-c2Vydg==", "TRACEABC=", 0);
}

TEST(what_is_no_id_names_no_trace)
{
	names(TRACEID_W3C, "", NULL, 0);
	names(TRACEID_W3C, "00-00000000000000000000000000000000-" SPAN "-01", NULL, 0);
	names(TRACEID_W3C, "00-" TRACE "00-" SPAN "-01", NULL, 0);
	names(TRACEID_W3C, TRACE, NULL, 0);
	names(TRACEID_B3, "0", NULL, 0);
	names(TRACEID_B3, "d", NULL, 0);
	names(TRACEID_UBER, "password:secret", NULL, 0);
	names(TRACEID_REQUEST, "user-4711", NULL, 0);
	names(TRACEID_REQUEST, "00000000-0000-0000-0000-000000000000", NULL, 0);
	names(TRACEID_REQUEST, "7f2d1c9e-0b7a-4c55-9a6b-0a7f3e2d1c9", NULL, 0);
	names(TRACEID_PLAIN, "hunter2 is the password", NULL, 0);
	names(TRACEID_SW8, "1", NULL, 0);
	assert_int_equal(traceid_span((const uint8_t *)"xyz", 3), 0);
}
