// Package edges holds the test of who may import whom in this repository. It has no code.
package edges
