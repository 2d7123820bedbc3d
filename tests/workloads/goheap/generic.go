// SPDX-License-Identifier: Apache-2.0

//go:build go1.18
// +build go1.18

package main

type list[T any] struct {
	items []T
	next  *list[T]
}

//go:noinline
func push[T any](l *list[T], v T) *list[T] {
	return &list[T]{items: append(make([]T, 0, 100), v), next: l}
}

func (l *list[T]) each(f func(T) []byte) (out [][]byte) {
	for ; l != nil; l = l.next {
		for _, v := range l.items {
			out = append(out, f(v))
		}
	}
	return out
}

func generic() {
	var a *list[int]
	var b *list[string]

	for i := 0; i < 200; i++ {
		a = push(a, i)
		b = push(b, "name")
	}
	kept = append(kept, a.each(func(n int) []byte { return make([]byte, n+64) })...)
	kept = append(kept, b.each(func(s string) []byte { return append(make([]byte, 0, 256), s...) })...)
}
