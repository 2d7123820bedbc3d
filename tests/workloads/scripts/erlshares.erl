% SPDX-License-Identifier: Apache-2.0
% Erlang code that is busy in functions whose callers it says first, by current_stacktrace: a line for each stack, then one that is
% empty.
-module(erlshares).
-export([main/0]).

main() ->
    erlang:system_flag(backtrace_depth, 64),
    main(tell).

main(N) ->
    outer(N),
    N =:= tell andalso io:put_chars("\n"),
    main(1).

outer(N) ->
    middle(N) + maps_of(N) + 1.

middle(N) ->
    leaf(2000, N) + 1.

maps_of(N) ->
    length(lists:map(fun(I) -> leaf(100 * I, N) + 1 end, lists:seq(1, 3))).

leaf(M, N) ->
    (case N of tell -> tell(); _ -> spin(M, N) end) + 1.

spin(0, A) -> A;
spin(N, A) -> spin(N - 1, (A * 7 + N) rem 1000003).

tell() ->
    {current_stacktrace, [_ | Frames]} = process_info(self(), current_stacktrace),
    io:put_chars([lists:join(";", [said(F) || F <- Frames]), "\n"]),
    1.

said({M, F, A, At}) ->
    io_lib:format("~w:~w/~w ~ts ~w", [M, F, A, proplists:get_value(file, At, "-"), proplists:get_value(line, At, 0)]).
