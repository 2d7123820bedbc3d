<?php
// SPDX-License-Identifier: Apache-2.0
// A small shop of several files, as frameworks have them: a namespace, a trait, a generator, closures, an include that returns.
require_once __DIR__ . '/shop.php';
require_once __DIR__ . '/view.php';
use App\Shop;
use App\View;
$shop = new Shop(include __DIR__ . '/config.php');
echo View::page('basket', $shop->basket((int)($_GET['n'] ?? 40)));
