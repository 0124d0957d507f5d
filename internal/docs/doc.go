// Package docs holds the tests of the documentation: its links, and the page that is made of the sources' own sentences. It
// has no code.
package docs
