<?php
// SPDX-License-Identifier: Apache-2.0
// leak: keeps KIB more each 20 ms in strings of 64 KiB at most, SECONDS long; says how many bytes. leak.php KIB SECONDS [none]: drops it each 16 MiB
ini_set("memory_limit", "-1");
$kept = [];

function leaky(int $kib)
{
	global $kept;
	$block = min($kib, 64);
	for ($i = 0; $i < intdiv($kib, $block); $i++)
		$kept[] = str_repeat("x", $block * 1024 - 536);
}

[$_, $kib, $seconds] = $argv;
for ($i = 0; $i < $seconds * 50; $i++) {
	leaky((int)$kib);
	if ($argc > 3 && count($kept) * min($kib, 64) > 16384)
		$kept = [];
	usleep(20000);
}
echo count($kept) * min($kib, 64) * 1024, "\n";
fgetc(STDIN);
