// Command release makes the files of a release; "make release" and "make image" run
// it. SOURCE_DATE_EPOCH says when the source was last changed, in seconds.
//
// It must not know what a release consists of, which is internal/release's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/release"
	"github.com/kubectl-sched/kubectl-sched/internal/release/gobuild"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	o := release.Options{Say: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&o.Root, "root", ".", "folder of the source")
	flags.StringVar(&o.Version, "version", "", "version, as v1.2.3")
	flags.StringVar(&o.Commit, "commit", "", "commit of the source, in full")
	flags.StringVar(&o.Dist, "dist", "dist", "folder to write to")
	platforms := flags.String("platforms", "", "platforms to build for, as linux/amd64,linux/arm64; all if not given")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	var err error
	if o.Platforms, err = parsePlatforms(*platforms); err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH must be the commit's time in seconds (git log -1 --format=%%ct): %w", err)
	}
	o.At = time.Unix(seconds, 0)
	switch what := flags.Args(); {
	case len(what) == 1 && what[0] == "archives":
		return release.Archives(ctx, o)
	case len(what) == 1 && what[0] == "image":
		return release.Image(ctx, o)
	default:
		return errors.New(`say what to make: "archives" or "image"`)
	}
}

func parsePlatforms(list string) (platforms []gobuild.Platform, err error) {
	if list == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(list, ",") {
		p, err := gobuild.ParsePlatform(text)
		if err != nil {
			return nil, err
		}
		platforms = append(platforms, p)
	}
	return platforms, nil
}
