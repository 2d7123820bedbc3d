<?php
// SPDX-License-Identifier: Apache-2.0
return ['tax' => 0.19, 'rows' => array_map(fn($i) => ['id' => $i, 'price' => $i * 7 % 101], range(1, 400))];
