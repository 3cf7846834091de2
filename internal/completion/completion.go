// Package completion is the program through which kubectl completes the plugin: what
// it is called and what it says, for the command that installs it and for the release
// that ships it. It maps an operating system to a file.
//
// It must not know commands, folders or who writes the file.
package completion

// Name is what kubectl looks for on the PATH when it completes "kubectl sched", on
// systems where a program needs no ending.
const Name = "kubectl_complete-sched"

// Shim returns the name and the text of that program on an operating system (a
// GOOS). It asks the plugin, by way of kubectl, so that it is right whichever plugin
// kubectl finds.
func Shim(goos string) (name, text string) {
	if goos == "windows" {
		return Name + ".cmd", "@echo off\r\nkubectl sched __complete %*\r\n"
	}
	return Name, "#!/bin/sh\n# Completes \"kubectl sched\"; kubectl runs it.\nexec kubectl sched __complete \"$@\"\n"
}
