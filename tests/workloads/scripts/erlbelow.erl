% SPDX-License-Identifier: Apache-2.0
% Erlang code whose time goes into C that it calls: built-in functions, the garbage collector, and comparisons that the code of a
% function calls itself. Each caller is a function of its own.
-module(erlbelow).
-export([main/0]).

main() ->
    Data = binary:copy(<<"some text, ">>, 6000),
    Deep = [{I, [I, I + 1], <<I:32>>} || I <- lists:seq(1, 3000)],
    Table = ets:new(t, [set]),
    ets:insert(Table, {key, Deep}),
    io:put_chars("\n"),
    loop(Data, Deep, Table).

loop(Data, Deep, Table) ->
    N = hashed(Data) + looked(Table) + packed(Deep) + compared(Deep, lists:map(fun(X) -> X end, Deep)),
    loop(Data, Deep, case N of 0 -> none; _ -> Table end).

hashed(Data) ->
    byte_size(erlang:md5(Data)) + 1.

looked(Table) ->
    [{key, Found}] = ets:lookup(Table, key),
    length(Found) + 1.

packed(Deep) ->
    byte_size(term_to_binary(Deep)) + 1.

compared(A, B) ->
    (case A =:= B of true -> 1; false -> 0 end) + 1.
