/* SPDX-License-Identifier: Apache-2.0 */
/* args: secrets are masked, names and harmless arguments are kept. '|' is the NUL between arguments
 * here. */
#include <errno.h>
#include <string.h>

#include "loaders/lib/host/proc/args.h"
#include "schema/base/strbuf.h"
#include "tests/unit/test.h"

static void expect(enum args_policy policy, const char *line, const char *want)
{
	struct strbuf in cleanup_strbuf = STRBUF_INIT, out cleanup_strbuf = STRBUF_INIT;

	strbuf_addstr(&in, line);
	strbuf_addch(&in, 0);
	for (size_t i = 0; i < in.len; i++)
		if (in.buf[i] == '|')
			in.buf[i] = 0;
	args_format(in.buf, in.len, policy, &out);
	assert_string_equal(strbuf_str(&out), want);
}

TEST(options_whose_name_is_a_secrets_lose_their_value)
{
	expect(ARGS_MASKED, "app|--password=hunter2|x", "app --password=*** x");
	expect(ARGS_MASKED, "app|--password|hunter2|x", "app --password *** x");
	expect(ARGS_MASKED, "app|--db-pass|hunter2", "app --db-pass ***");
	expect(ARGS_MASKED, "java|-Djavax.net.ssl.keyStorePassword=hunter2|A",
	       "java -Djavax.net.ssl.keyStorePassword=*** A");
	expect(ARGS_MASKED, "env|API_KEY=hunter2|GITHUB_TOKEN=x|run",
	       "env API_KEY=*** GITHUB_TOKEN=*** run");
	expect(ARGS_MASKED, "env|PGPASSWORD=hunter2|psql", "env PGPASSWORD=*** psql");
	expect(ARGS_MASKED, "app|-authToken|hunter2", "app -authToken ***");
	expect(ARGS_MASKED, "app|--requirepass|hunter2", "app --requirepass ***");
	expect(ARGS_MASKED, "app|--secret-access-key=hunter2", "app --secret-access-key=***");
	expect(ARGS_MASKED, "app|--password=|x", "app --password= x");
}

TEST(what_only_says_where_a_secret_lies_stays)
{
	expect(ARGS_MASKED, "app|--password-file=/run/secret|x",
	       "app --password-file=/run/secret x");
	expect(ARGS_MASKED, "app|--token-ttl|60", "app --token-ttl 60");
	expect(ARGS_MASKED, "app|--keyboard=us|--passive|--compass=n|--key=5",
	       "app --keyboard=us --passive --compass=n --key=5");
	expect(ARGS_MASKED, "rsync|host:path|user@host:/x", "rsync host:path user@host:/x");
	expect(ARGS_MASKED, "git|clone|https://github.com/a/b@v2",
	       "git clone https://github.com/a/b@v2");
}

TEST(short_options_of_known_programs_are_masked)
{
	expect(ARGS_MASKED, "/usr/bin/mysql|-uroot|-phunter2|db", "/usr/bin/mysql -uroot -p*** db");
	expect(ARGS_MASKED, "mysqldump|-p|hunter2", "mysqldump -p ***");
	expect(ARGS_MASKED, "sudo|mysql|-phunter2", "sudo mysql -p***");
	expect(ARGS_MASKED, "redis-cli|-a|hunter2|ping", "redis-cli -a *** ping");
	expect(ARGS_MASKED, "curl|-u|bob:hunter2|http://h/", "curl -u bob:*** http://h/");
	expect(ARGS_MASKED, "curl|-ubob:hunter2", "curl -ubob:***");
	expect(ARGS_MASKED, "curl|--user|bob:hunter2", "curl --user bob:***");
	expect(ARGS_MASKED, "curl|--user=bob:hunter2", "curl --user=bob:***");
	expect(ARGS_MASKED, "ls|-print|-p|x", "ls -print -p x");
	expect(ARGS_MASKED, "mkdir|-p|a", "mkdir -p a");
}

TEST(passwords_in_urls_and_dsns_are_masked)
{
	expect(ARGS_MASKED, "app|postgres://bob:hunter2@db:5432/x",
	       "app postgres://bob:***@db:5432/x");
	expect(ARGS_MASKED, "app|--dsn=redis://:hunter2@h/0", "app --dsn=redis://:***@h/0");
	expect(ARGS_MASKED, "app|https://bob:hun@ter2@h/p?q=1", "app https://bob:***@h/p?q=1");
	expect(ARGS_MASKED, "app|bob:hunter2@tcp(db:3306)/x", "app bob:***@tcp(db:3306)/x");
	expect(ARGS_MASKED, "app|http://h:80/a@b", "app http://h:80/a@b");
	expect(ARGS_MASKED, "app|http://h/?token=hunter2&x=1", "app http://h/?token=***&x=1");
}

TEST(headers_are_masked)
{
	expect(ARGS_MASKED, "curl|-H|Authorization: Bearer hunter2|u",
	       "curl -H Authorization: *** u");
	expect(ARGS_MASKED, "curl|-HCookie: a=b; c=d|u", "curl -HCookie: *** u");
	expect(ARGS_MASKED, "curl|--header=X-Api-Key: hunter2", "curl --header=X-Api-Key: ***");
	expect(ARGS_MASKED, "sh|-c|curl -H 'Authorization: Basic hunter2' http://h",
	       "sh -c curl -H 'Authorization: ***' http://h");
}

TEST(secrets_inside_one_argument_are_masked)
{
	expect(ARGS_MASKED, "sh|-c|PASSWORD=hunter2 run --token hunter3; ls",
	       "sh -c PASSWORD=*** run --token ***; ls");
	expect(ARGS_MASKED, "psql|host=h password=hunter2 dbname=d",
	       "psql host=h password=*** dbname=d");
	expect(ARGS_MASKED, "app|{\"user\": \"bob\", \"password\": \"hun ter2\"}",
	       "app {\"user\": \"bob\", \"password\": \"***\"}");
	expect(ARGS_MASKED, "sh|-c|export SECRET=\"hun ter2\"; x",
	       "sh -c export SECRET=\"***\"; x");
}

TEST(tokens_are_known_by_their_shape)
{
	expect(ARGS_MASKED, "app|ghp_0123456789abcdefABCDEF0123456789abcd", "app ***");
	expect(ARGS_MASKED, "app|x=AKIAIOSFODNN7EXAMPLE,y", "app x=***,y");
	expect(ARGS_MASKED, "app|eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdef", "app ***");
	expect(ARGS_MASKED, "app|sk-learn|task-force", "app sk-learn task-force");
}

TEST(the_policy_decides)
{
	enum args_policy p;

	expect(ARGS_FULL, "app|--password=hunter2", "app --password=hunter2");
	expect(ARGS_NONE, "app|--password=hunter2", "app");
	expect(ARGS_FULL, "a\nb|c\rd", "a b c d");
	assert_int_equal(args_policy_parse(NULL, &p), 0);
	assert_int_equal(p, ARGS_MASKED);
	assert_int_equal(args_policy_parse("full", &p), 0);
	assert_int_equal(p, ARGS_FULL);
	assert_int_equal(args_policy_parse("none", &p), 0);
	assert_int_equal(p, ARGS_NONE);
	assert_int_equal(args_policy_parse("some", &p), -EINVAL);
}

TEST(a_cut_command_line_without_its_last_nul_is_masked_too)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	args_format("app\0--password=hunt", 19, ARGS_MASKED, &out);
	assert_string_equal(strbuf_str(&out), "app --password=***");
	strbuf_reset(&out);
	args_format("", 0, ARGS_MASKED, &out);
	assert_string_equal(strbuf_str(&out), "");
}
