/* SPDX-License-Identifier: Apache-2.0 */
/* fastcgi: records as in the specification of FastCGI 1.0. */
#include "tests/unit/loaders/lib/protocols/talk.h"

static void a_request_is_named_by_its_parameters_and_its_status_is_the_responses(void **state)
{
	static const struct turn turns[] = {
		C("\x01\x01\x00\x01\x00\x08\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00"
		  "\x01\x04\x00\x01\x00"
		  "2\x06\x00\x0f\x80\x00\x00\x8cSCRIPT_FILENAME/x/x/x/x/x/x"
		  "/x/x/x/x/x/x/x/x/x\x00\x00\x00\x00\x00\x00"
		  "\x01\x04\x00\x01\x00\xac\x00\x00/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x"
		  "/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x"
		  "/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x\x0e\x04"
		  "REQUEST_METHODPOST\x09\x01HTTP_HOSTh\x0b\x11REQUEST_"
		  "URI/user/12/edit\?x=1"
		  "\x01\x04\x00\x01\x00\x00\x00\x00"
		  "\x01\x05\x00\x01\x00\x04\x00\x00"
		  "body"
		  "\x01\x05\x00\x01\x00\x00\x00\x00"),
		S("\x01\x07\x00\x01\x00\x09\x00\x00"
		  "a warning"
		  "\x01\x06\x00\x01\x00"
		  "3\x03\x00"
		  "Content-Type: text/html\r\nStatus:"
		  " 503 Busy\r\n\r\n<html>\x00\x00\x00"
		  "\x01\x06\x00\x01\x00\x00\x00\x00"
		  "\x01\x03\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
		C("\x01\x01\x00\x01\x00\x08\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00"
		  "\x01\x04\x00\x01\x00\xcd\x00\x00\x0f\x80\x00\x00\x8cSCRIPT_FILENAME/x/x/x/x/x/x"
		  "/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x"
		  "/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x"
		  "/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x"
		  "/x/x/x/x\x0e\x03REQUEST_METHODGET\x09\x01HTTP_HOSTh\x0b"
		  "\x01REQUEST_URI/"
		  "\x01\x04\x00\x01\x00\x00\x00\x00"
		  "\x01\x05\x00\x01\x00\x00\x00\x00"),
		S("\x01\x06\x00\x01\x00\x1c\x00\x00"
		  "Content-Type: text/html\r\n\r\nx"
		  "\x01\x06\x00\x01\x00\x00\x00\x00"
		  "\x01\x03\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
		C("\x01\x01\x00\x02\x00\x08\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00"
		  "\x01\x04\x00\x02\x00\xce\x00\x00\x0f\x80\x00\x00\x8cSCRIPT_FILENAME/x/x/x/x/x/x"
		  "/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x"
		  "/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x"
		  "/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x"
		  "/x/x/x/x\x0e\x03REQUEST_METHODGET\x09\x01HTTP_HOSTh\x0b"
		  "\x02REQUEST_URI/b"
		  "\x01\x04\x00\x02\x00\x00\x00\x00"),
		S("\x01\x03\x00\x02\x00\x08\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00"),
		END};

	(void)state;
	talk_expect(turns, "fastcgi",
		    "POST h/user/{id}/edit error 503\n"
		    "GET h/ ok 200\n"
		    "GET h/b error end 2\n");
}

static void a_password_in_an_authority_is_not_told(void **state)
{
	static const struct turn turns[] = {
		C("\x01\x01\x00\x01\x00\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01\x04\x00\x01\x00H\x00\x00"
		  "\x0e\x03REQUEST_METHODGET\x09\nHTTP_HOSTann:fern@h\x0b\x13REQUEST_URIhttp://ann:fern@h/a\x01"
		  "\x04\x00\x01\x00\x00\x00\x00\x01\x05\x00\x01\x00\x00\x00\x00"),
		S("\x01\x06\x00\x01\x00\x08\x00\x00"
		  "A: b\r\n\r\n\x01\x03\x00\x01\x00\x08\x00\x00\x00\x00\x00"
		  "\x00\x00\x00\x00\x00"),
		END};

	(void)state;
	talk_expect(turns, "fastcgi", "GET h/a ok 200\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_request_is_named_by_its_parameters_and_its_status_is_the_responses),
		cmocka_unit_test(a_password_in_an_authority_is_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
