// Package imagename is what the scheduler's image is called. It is the one place that
// says so, for those who build the image and for those who install it: it maps a
// version of the project to a reference.
//
// It must not know how an image is made or run, and imports the standard library
// alone.
package imagename

import "regexp"

// Repository is where releases of the image are published.
const Repository = "ghcr.io/kubectl-sched/placement-scheduler"

// releaseVersion matches the versions of releases and of their candidates. What git
// and Go make up for other commits (v1.2.3-4-gabcdef, v0.0.0-2026…-abcdef) is none:
// no image has that tag.
var releaseVersion = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(alpha|beta|rc)\.\d+)?$`)

// Of returns the reference of the image of a version: the repository, and the version
// for its tag.
func Of(version string) string { return Repository + ":" + version }

// Released returns the reference of the image that was released with a version
// of the plugin, and whether that version is a release.
func Released(version string) (reference string, released bool) {
	if !releaseVersion.MatchString(version) {
		return "", false
	}
	return Of(version), true
}
