module goheap

go 1.18
