/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions as Erlang's stack traces and Elixir's have them. */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/beam/beamname.h"
#include "tests/unit/test.h"

static void check(char *got, const char *want)
{
	if (want) {
		assert_non_null(got);
		assert_string_equal(got, want);
	} else {
		assert_null(got);
	}
	free(got);
}

TEST(a_function_is_written_as_its_language_does)
{
	check(beamname_make("lists", "map", 2), "lists:map/2");
	check(beamname_make("shares", "-wrap/1-fun-0-", 1), "shares:'-wrap/1-fun-0-'/1");
	check(beamname_make("erlang", "+", 2), "erlang:'+'/2");
	check(beamname_make("Elixir.Enum", "map", 2), "Enum.map/2");
	check(beamname_make("Elixir.Shop.Cart", "total!", 1), "Shop.Cart.total!/1");
	check(beamname_make("Elixir.Shop", "-total/2-fun-1-", 1), "anonymous fn/1 in Shop.total/2");
	check(beamname_make("Elixir.Enum", "-map/2-lists^map/1-0-", 2),
	      "Enum.\"-map/2-lists^map/1-0-\"/2");
	check(beamname_make("Elixir.Kernel", "--", 2), "Kernel.--/2");
	check(beamname_make("", "map", 2), NULL);
}

TEST(what_the_runtime_writes_for_perf_is_read)
{
	check(beamname_of_perf("$lists:map/2"), "lists:map/2");
	check(beamname_of_perf("$lists:map/2-CodeInfoPrologue"), "lists:map/2");
	check(beamname_of_perf("$'Elixir.Enum':map/2"), "Enum.map/2");
	check(beamname_of_perf("$'Elixir.Enum':'-map/2-fun-0-'/1"), "anonymous fn/1 in Enum.map/2");
	check(beamname_of_perf("$erl_init:'-start/2-fun-0-'/0"), "erl_init:'-start/2-fun-0-'/0");
	check(beamname_of_perf("$erlang:'/'/2"), "erlang:'/'/2");
	check(beamname_of_perf("$global::apply_fun_shared"), NULL);
	check(beamname_of_perf("lists:map/2"), NULL);
	check(beamname_of_perf("$lists:map"), NULL);
	check(beamname_of_perf("$lists:map/"), NULL);
	check(beamname_of_perf("$lists:map/256"), NULL);
	check(beamname_of_perf("$lists:map/2x"), NULL);
	check(beamname_of_perf("$'lists:map/2"), NULL);
	check(beamname_of_perf("$:map/2"), NULL);
	check(beamname_of_perf("$"), NULL);
	check(beamname_of_perf(""), NULL);
}
