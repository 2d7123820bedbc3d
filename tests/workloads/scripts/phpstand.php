<?php
// SPDX-License-Identifier: Apache-2.0
// A PHP program that stands in known code, for PHP 7.4 to 8.4. Prints one line of JSON when it stands: its frames as PHP itself says
// them (debug_backtrace), innermost first: [function, file, line], of a function of C [function, null, null]. Then waits for the end of
// its standard input.
//
//     phpstand.php SCENE

function told(array $trace, int $line): array
{
    $frames = [];
    $at = [__FILE__, $line];
    foreach ($trace as $call) {
        $name = (isset($call['class']) ? explode("\0", $call['class'])[0] . '::' : '') . $call['function'];
        if (in_array($name, ['include', 'require', 'include_once', 'require_once'])) {
            $name = '{include}';
        } elseif ($name === 'eval') {
            $name = '{eval}';
        }
        $frames[] = array_merge([$name], $at);
        $at = isset($call['file']) ? [$call['file'], $call['line']] : [null, null];
    }
    $frames[] = array_merge(['{main}'], $at);
    return $frames;
}

function json(array $frames): string // some builds have no json_encode
{
    $rows = [];
    foreach ($frames as $frame) {
        $words = [];
        foreach ($frame as $v) {
            $words[] = $v === null ? 'null' : (is_int($v) ? $v : '"' . addcslashes($v, '"\\') . '"');
        }
        $rows[] = '[' . implode(', ', $words) . ']';
    }
    return '[' . implode(', ', $rows) . ']';
}

function stand()
{
    $frames = told(debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS), __LINE__ + 3);
    array_unshift($frames, ['fgets', null, null]);
    echo json($frames), "\n";
    fgets(STDIN);
    return 1;
}

class Box
{
    private $by;

    public function method($n)
    {
        return $n ? $this->method($n - 1)
            : self::once();
    }

    public static function once()
    {
        return stand();
    }

    public function __call($name, $args)
    {
        return stand();
    }

    public function __toString()
    {
        stand();
        return 'x';
    }

    public function closure()
    {
        return function () {
            return $this->method(1);
        };
    }
}

class Leaves
{
    public function __destruct()
    {
        stand();
    }
}

function leaving()
{
    $x = new Leaves();
}

class Walks implements IteratorAggregate
{
    #[ReturnTypeWillChange]
    public function getIterator()
    {
        yield stand();
    }
}

function recursion($n)
{
    return $n ? recursion($n - 1) : stand();
}

function by_usort()
{
    $a = [2, 1];
    usort($a, function ($x, $y) {
        return stand();
    });
}

function by_map($n)
{
    return array_map(function ($x) use ($n) {
        return $n ? by_map($n - 1) : stand();
    }, [1]);
}

function inner()
{
    yield stand();
}

function middle()
{
    yield from inner();
}

function outer()
{
    yield from middle();
}

function by_generators()
{
    foreach (outer() as $x) {
        return $x;
    }
}

$scenes = [
    'plain' => 'stand',
    'recursion' => function () { return recursion(30); },
    'deep' => function () { return recursion(350); },
    'method' => function () { return (new Box())->method(3); },
    'call' => function () { return (new Box())->unknown(1); },
    'text' => function () { return 'a' . new Box(); },
    'closure' => function () { return (new Box())->closure()(); },
    'usort' => 'by_usort',
    'map' => function () { return by_map(3); },
    'user_func' => function () { return call_user_func_array('recursion', [2]); },
    'reflection' => function () { return (new ReflectionFunction('recursion'))->invoke(1); },
    'regex' => function () { return preg_replace_callback('/x/', function ($m) { return stand(); }, 'axb'); },
    'destructor' => 'leaving',
    'iterator' => function () { foreach (new Walks() as $x) { return $x; } },
    'generators' => 'by_generators',
    'include' => function () { return include $GLOBALS['argv'][2]; },
    'eval' => function () { return eval("\n\nreturn recursion(1);"); },
    'anonymous' => function () { return (new class { public function f() { return stand(); } })->f(); },
    'autoload' => function () { spl_autoload_register(function ($name) { stand(); }); return interface_exists('Missing'); },
    'fiber' => function () { $f = new Fiber(function () { return recursion(2); }); $f->start(); },
];
if ($argv[1] === 'list') {
    if (!class_exists('Fiber')) {
        unset($scenes['fiber']);
    }
    echo implode("\n", array_keys($scenes)), "\n";
    exit;
}
$scenes[$argv[1]]();
