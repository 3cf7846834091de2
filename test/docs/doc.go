// Package docs holds what the pages of the documentation say against what is there:
// links lead somewhere, commands and flags exist, policies compile, YAML is of its kind,
// and the tutorial, the commands of all other pages and the examples of the help texts
// are run as they are written, in a folder with what pages speak of or on a control
// plane. It must not know what a page is about.
package docs
