<?php
// SPDX-License-Identifier: Apache-2.0
namespace App;

final class View
{
    public static function page(string $title, array $rows): string
    {
        ob_start();
        foreach ($rows as $row) {
            echo self::row($row);
        }
        return '<h1>' . htmlspecialchars($title) . '</h1>' . ob_get_clean();
    }

    private static function row(array $row): string
    {
        return preg_replace_callback('/\{(\w+)\}/', static function (array $m) use ($row) {
            return htmlspecialchars((string)$row[$m[1]]);
        }, "<li>{id}: {name} {price}</li>\n");
    }
}
