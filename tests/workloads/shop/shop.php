<?php
// SPDX-License-Identifier: Apache-2.0
namespace App;

abstract class Model
{
    protected array $config;

    public function __construct(array $config)
    {
        $this->config = $config;
    }

    protected function rows(): \Generator
    {
        foreach ($this->config['rows'] as $row) {
            yield $row['id'] => $row;
        }
    }
}

trait Taxed
{
    public function taxed(float $price): float
    {
        return round($price * (1 + $this->config['tax']), 2);
    }
}

class Shop extends Model
{
    use Taxed;

    public function basket(int $n): array
    {
        $all = [];
        foreach ($this->rows() as $id => $row) {
            $all[] = ['id' => $id, 'name' => md5((string)$id), 'price' => $this->taxed($row['price'])];
        }
        usort($all, function ($a, $b) {
            return $this->compare($a, $b);
        });
        return array_slice($all, 0, $n);
    }

    private function compare(array $a, array $b): int
    {
        return [$a['price'], $a['name']] <=> [$b['price'], $b['name']];
    }
}
