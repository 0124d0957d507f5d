// Package architecture has the tests of the repository's structure: which package may import which, what a function's main
// may do, what is confined to one package, and what make verify regenerates. It has no code.
package architecture
