# SPDX-License-Identifier: Apache-2.0
# A Ruby program that knows its own stack: three chains of calls share its CPU time 60, 30 and 10, through methods, a recursion, functions of
# C that call back, blocks and class methods, in a thread. For Ruby 2.7 and later.
#
#     rubyshares.rb SECONDS
#
# Before it begins it says its chains as JSON, one line: {"chains": {NAME: [[label, file, line], ...]}, "spins": [first, last line]},
# innermost first, of a function of C with the line of who called it; at the end how long it was in each: {"cpu": {NAME: seconds}}.
# Waits for a line of input in between.

FIRST = __LINE__ + 1
def spin(n)
  i = 0
  while i < n
    i += 1
  end
end
LAST = __LINE__ - 1

def note(_)
  $say = caller_locations(0).map { |l| [l.label, l.absolute_path || l.path, l.lineno] }
  $say[0] = ['spin', __FILE__, LAST - 2]
end

def work(n)
  $noted ? note(n) : spin(n)
end

def deep(n, left)
  left > 0 ? deep(n, left - 1) : work(n)
end

def alpha(n)
  deep(n, 12)
end

class Steps
  def self.begin(n)
    new.run(n)
  end

  def run(n)
    [1].each do |_|
      work(n)
    end
  end
end

def beta(n)
  [1].sort_by { |_| Steps.begin(n) }
end

def gamma(n)
  [n].map { |x| work(x) }
end

def clock
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
end

CHAINS = { 'alpha' => 6, 'beta' => 3, 'gamma' => 1 }.freeze

def turn(n, turns, times)
  CHAINS.each do |name, calls|
    before = clock
    (calls * turns).times { send(name, n) }
    times[name] = times.fetch(name, 0) + clock - before
  end
end

def json(v)
  case v
  when Hash then "{#{v.map { |k, x| "#{json(k)}: #{json(x)}" }.join(', ')}}"
  when Array then "[#{v.map { |x| json(x) }.join(', ')}]"
  when nil then 'null'
  when String then v.inspect
  else v.to_s
  end
end

$noted = true
chains = CHAINS.keys.to_h { |name| [name, (send(name, 0); $say)] }
puts json({ 'chains' => chains, 'spins' => [FIRST, LAST] })
$stdout.flush
$stdin.gets
$noted = false
times = {}
seconds = ARGV[0].to_f
Thread.new do
  upto = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  turn(20_000, 2, times) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < upto
end.join
puts json({ 'cpu' => times })
