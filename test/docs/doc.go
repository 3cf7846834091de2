// Package docs holds what the pages of the documentation say against what is there:
// links lead somewhere, commands and flags exist, policies compile, and the tutorial
// is run as it is written. It must not know what a page is about.
package docs
