# SPDX-License-Identifier: Apache-2.0
# Elixir code that is busy in functions whose callers it says first, as Elixir writes them: a line for each stack, then one that is empty.
defmodule Shop.Cart do
  def total(n), do: price(2000, n) + 1

  def price(m, n), do: if(n == :tell, do: tell(), else: spin(m, n)) + 1

  def spin(0, a), do: a
  def spin(n, a), do: spin(n - 1, rem(a * 7 + n, 1_000_003))

  def each(n), do: Enum.sum(Enum.map([1, 2, 3], fn i -> price(i * 100, n) + i end))

  def run(n) do
    total(n)
    each(n)
    if n == :tell, do: IO.puts("")
    run(1)
  end

  defp tell do
    {:current_stacktrace, [_, _ | frames]} = Process.info(self(), :current_stacktrace)
    IO.puts(Enum.map_join(frames, ";", &Exception.format_stacktrace_entry/1))
    1
  end
end

:erlang.system_flag(:backtrace_depth, 64)
Shop.Cart.run(:tell)
