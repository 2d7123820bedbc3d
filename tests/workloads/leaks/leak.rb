# SPDX-License-Identifier: Apache-2.0
# leak: keeps KIB more each 20 ms in strings of 64 KiB, SECONDS long; says how many bytes. leak.rb KIB SECONDS [none]: drops it each 16 MiB
$kept = []

def leaky(kib)
  (kib / 64).times { $kept << "x" * 65_536 }
end

kib, turns = ARGV[0].to_i, ARGV[1].to_i * 50
turns.times do
  leaky(kib)
  if ARGV[2] && $kept.size > 256
    $kept.clear
    GC.start
  end
  sleep 0.02
end
puts $kept.size * 65_536
$stdout.flush
$stdin.getc
