<?php
// SPDX-License-Identifier: Apache-2.0
// leak: keeps KIB more each 20 ms in strings of 64 KiB, SECONDS long; says how many bytes. leak.php KIB SECONDS [none]: drops it each 16 MiB
ini_set("memory_limit", "-1");
$kept = [];

function leaky(int $kib)
{
	global $kept;
	for ($i = 0; $i < intdiv($kib, 64); $i++)
		$kept[] = str_repeat("x", 65000);
}

[$_, $kib, $seconds] = $argv;
for ($i = 0; $i < $seconds * 50; $i++) {
	leaky((int)$kib);
	if ($argc > 3 && count($kept) > 256)
		$kept = [];
	usleep(20000);
}
echo count($kept) * 65536, "\n";
fgetc(STDIN);
