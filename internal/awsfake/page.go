package awsfake

import "strconv"

// pageOf is one page of a list, and the token of the next one; nil where it is the last.
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
