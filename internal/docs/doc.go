// Package docs holds the tests of the documentation: its links, what it must list, and what it must not advise. It has no code.
package docs
