# SPDX-License-Identifier: Apache-2.0
# leak: keeps KIB more each 20 ms in strings of 64 KiB at most, SECONDS long; says how many bytes. leak.rb KIB SECONDS [none]: drops it each 16 MiB
$kept = []

def leaky(kib)
  block = [kib, 64].min
  (kib / block).times { $kept << "x" * (block << 10) }
end

kib, turns = ARGV[0].to_i, ARGV[1].to_i * 50
turns.times do
  leaky(kib)
  if ARGV[2] && $kept.sum(&:bytesize) > 16 << 20
    $kept.clear
    GC.start
  end
  sleep 0.02
end
puts $kept.sum(&:bytesize)
$stdout.flush
$stdin.getc
