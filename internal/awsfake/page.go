package awsfake

import "strconv"

// pageOf returns one page of a list and the token of the next page; nil after the last page.
func pageOf[T any](all []T, token *string, size int) ([]T, *string) {
	start := 0
	if value(token) != "" {
		start, _ = strconv.Atoi(*token)
	}
	start = min(start, len(all))
	if end := start + size; end < len(all) {
		return all[start:end], new(strconv.Itoa(end))
	}
	return all[start:], nil
}
