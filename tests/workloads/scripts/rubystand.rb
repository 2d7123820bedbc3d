# SPDX-License-Identifier: Apache-2.0
# Threads that stand in known Ruby code, for Ruby 2.7 and later. Prints one line of JSON when all of them stand: of each its thread id, and
# its frames as Ruby itself says them (Thread#backtrace_locations), innermost first: [label, file, line]. A function of C has the
# line of who called it. Then waits for the end of its standard input.

STANDS = Queue.new

def stand
  STANDS.pop
end

class Box
  def method(n)
    n > 0 ? method(n - 1) : self.class.once
  end

  def self.once
    stand_in_block { stand }
  end

  def self.stand_in_block
    yield
  end

  def method_missing(name, *args)
    stand
  end

  def respond_to_missing?(*)
    true
  end

  define_method(:defined) { stand }

  def closure
    lambda do
      method(1)
    end
  end

  def <=>(other)
    stand
    0
  end
  include Comparable
end

def recursion(n)
  n > 0 ? recursion(n - 1) : stand
end

def by_each
  [1].each do |x|
    [x].map { |y| stand }
  end
end

def by_rescue
  raise "x"
rescue StandardError
  stand
end

def by_ensure
  return 1
ensure
  stand
end

def by_enumerator
  e = Enumerator.new { |y| y << stand }
  e.next
end

def by_lines
  Box
    .new
    .method(
      1
    )
end

KINDS = {
  plain: -> { stand },
  recursion: -> { recursion(30) },
  deep: -> { recursion(350) },
  method: -> { Box.new.method(3) },
  missing: -> { Box.new.unknown },
  defined: -> { Box.new.defined },
  closure: -> { Box.new.closure.call },
  comparable: -> { Box.new == Box.new },
  each: -> { by_each },
  sort: -> { [2, 1].sort_by { |x| stand } },
  times: -> { 1.times { stand } },
  regex: -> { "axb".gsub(/x/) { stand } },
  rescue: -> { by_rescue },
  ensure: -> { by_ensure },
  fiber: -> { Fiber.new { recursion(2) }.resume },
  enumerator: -> { by_enumerator },
  lines: -> { by_lines },
  eval: -> { eval("\n\nrecursion(1)", binding, "evaluated.rb", 5) },
  send: -> { Box.new.__send__(:method, 1) },
  catch: -> { catch(:x) { stand } },
  symbol: -> { [Box.new].each(&:defined) },
  instance: -> { Box.new.instance_eval { stand } },
  class: -> { Class.new { stand } },
  sleep: -> { sleep },
  lock: -> { LOCK.lock },
  hash: -> { Hash.new { |h, k| stand }[1] },
  thread: -> { Thread.new { stand }.join },
}
LOCK = Mutex.new
LOCK.lock
TIDS = {}
THREADS = KINDS.map do |kind, run|
  Thread.new do
    TIDS[Thread.current] = Integer(File.basename(File.readlink("/proc/thread-self")))
    run.call
  end
end
sleep 0.01 until STANDS.num_waiting == KINDS.size - 2 && LOCK.locked? && THREADS.all?(&:stop?) # all but sleep and lock

def text(s)
  %(") + s.to_s.gsub(/["\\]/) { |c| "\\#{c}" } + %(")
end
told = THREADS.each_with_index.map do |t, i|
  frames = t.backtrace_locations.map { |f| "[#{text(f.label)}, #{text(f.path)}, #{f.lineno}]" }
  "\"#{TIDS[t]}\": [\"#{KINDS.keys[i]}\", [#{frames.join(', ')}]]"
end
puts "{\"version\": \"#{RUBY_VERSION}\", \"threads\": {#{told.join(', ')}}}"
$stdout.flush
$stdin.read
