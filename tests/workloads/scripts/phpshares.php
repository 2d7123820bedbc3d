<?php
// SPDX-License-Identifier: Apache-2.0
// A PHP program that knows its own stack: three chains of calls share its CPU time 60, 30 and 10, through functions, a recursion, functions
// of C that call back, methods and a generator. For PHP 7.4 to 8.4.
//
//     phpshares.php SECONDS
//
// Before it begins it says its chains as JSON, one line: {"chains": {NAME: [[function, file, line], ...]}, "spins": [first, last line]},
// innermost first, of a function of C [function, null, null]; at the end how long it was in each: {"cpu": {NAME: seconds}}. Waits for a
// line of input in between.

function spin($n)
{
    $x = 0;
    for ($i = 0; $i < $n; $i++)
        $x += $i;
    return $x;
}

function note($n)
{
    global $say;
    $frames = [];
    $at = [__FILE__, 0];
    foreach (debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS) as $call) {
        $name = (isset($call['class']) ? $call['class'] . '::' : '') . $call['function'];
        $frames[] = array_merge([$name === 'note' ? 'spin' : $name], $at);
        $at = isset($call['file']) ? [$call['file'], $call['line']] : [null, null];
    }
    $frames[] = array_merge(['{main}'], $at);
    $say = $frames;
    return 0;
}

function json($v)
{
    if (is_array($v)) {
        $rows = [];
        foreach ($v as $k => $x) {
            $rows[] = (is_string($k) ? json($k) . ': ' : '') . json($x);
        }
        return isset($v[0]) ? '[' . implode(', ', $rows) . ']' : '{' . implode(', ', $rows) . '}';
    }
    return $v === null ? 'null' : (is_string($v) ? '"' . addcslashes($v, '"\\') . '"' : (string)$v);
}

function deep($n, $left)
{
    global $work;
    return $left ? deep($n, $left - 1) : $work($n);
}

class Steps
{
    public static function begin($n)
    {
        return (new Steps())->run($n);
    }

    public function run($n)
    {
        foreach ($this->each($n) as $x) {
            return $x;
        }
    }

    private function each($n)
    {
        global $work;
        yield $work($n);
    }
}

function alpha($n)
{
    return deep($n, 12);
}

function beta($n)
{
    $list = [2, 1];
    usort($list, function ($a, $b) use ($n) { return Steps::begin($n); });
}

function gamma($n)
{
    global $work;
    return array_map($work, [$n]);
}

function cpu()
{
    $r = getrusage();
    return $r['ru_utime.tv_sec'] + $r['ru_stime.tv_sec'] + ($r['ru_utime.tv_usec'] + $r['ru_stime.tv_usec']) / 1e6;
}

function turn($n, $turns, array &$times)
{
    foreach (['alpha' => 6, 'beta' => 3, 'gamma' => 1] as $name => $calls) {
        $before = cpu();
        for ($i = 0; $i < $calls * $turns; $i++)
            $name($n);
        $times[$name] = (isset($times[$name]) ? $times[$name] : 0) + cpu() - $before;
    }
}

$work = 'note';
$chains = [];
foreach (['alpha', 'beta', 'gamma'] as $name) {
    $name(0);
    $chains[$name] = $say;
}
$spin = new ReflectionFunction('spin');
echo json(['chains' => $chains, 'spins' => [$spin->getStartLine(), $spin->getEndLine()]]), "\n";
fgets(STDIN);
$work = 'spin';
$times = [];
$until = microtime(true) + (float)$argv[1];
while (microtime(true) < $until)
    turn(20000, 5, $times);
echo json(['cpu' => $times]), "\n";
