package condition_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	value := "Ready"
	for text, want := range map[string]condition.Condition{
		`{"peers":{"selector":"app=web,tier in (a,b)","min":3}}`: {Peers: &condition.Peers{Selector: "app=web,tier in (a,b)", Min: 3}},

		`{"peers":{"selector":"app","min":1,"ready":true}}`: {Peers: &condition.Peers{Selector: "app", Min: 1, Ready: true}},

		`{"object":{"apiVersion":"batch/v1","kind":"Job","name":"x"}}`: {Object: &condition.Object{APIVersion: "batch/v1", Kind: "Job", Name: "x"}},

		`{"object":{"apiVersion":"v1","kind":"Service","name":"x","path":"{.status.a}","value":"Ready"}}`: {Object: &condition.Object{APIVersion: "v1", Kind: "Service", Name: "x", Path: "{.status.a}", Value: &value}},

		`{"quota":{"name":"ml"}}`: {Quota: &condition.Quota{Name: "ml"}},

		`{"approval":{}}`: {Approval: &condition.Approval{}},

		`{"notBefore":"2026-11-30T22:00:00+01:00"}`: {NotBefore: "2026-11-30T22:00:00+01:00"},

		`{"window":{"zone":"Europe/Berlin","days":["Sat","Sun"],"from":"22:00","to":"06:00"}}`: {Window: &condition.Window{Zone: "Europe/Berlin", Days: []condition.Day{"Sat", "Sun"}, From: "22:00", To: "06:00"}},
	} {
		got, found := condition.Decode(text)
		if len(found) > 0 {
			t.Errorf("%s: %v", text, found)
			continue
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", text, diff)
		}
		again, err := condition.Encode(got)
		if err != nil || again != text {
			t.Errorf("%s: encoded as %s (%v)", text, again, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                     "is no condition",
		`yes`:                                  "is no condition",
		`null`:                                 "say one condition, not 0",
		`{}`:                                   "say one condition, not 0",
		`{} {}`:                                "is no condition",
		`{"approval":{},"quota":{"name":"a"}}`: "say one condition, not 2",
		`{"approve":{}}`:                       "approve",
		`{"Approval":{}}`:                      "Approval",
		`{"peers":{"selector":"a","min":1,"redy":true}}`:                                   "peers.redy",
		`{"peers":{"selector":"a","min":1,"min":2}}`:                                       "peers.min",
		`{"peers":{"selector":"a","min":"1"}}`:                                             "peers.min",
		`{"peers":{"selector":"a","min":0}}`:                                               "peers.min",
		`{"peers":{"selector":"a=(","min":1}}`:                                             "peers.selector",
		`{"peers":{"min":1}}`:                                                              "peers.selector",
		`{"object":{"apiVersion":"a/b/c","kind":"Job","name":"x"}}`:                        "object.apiVersion",
		`{"object":{"apiVersion":"","kind":"Job","name":"x"}}`:                             "object.apiVersion",
		`{"object":{"apiVersion":"v1","kind":"a b","name":"x"}}`:                           "object.kind",
		`{"object":{"apiVersion":"v1","kind":"Job"}}`:                                      "object.name",
		`{"object":{"apiVersion":"v1","kind":"Job","name":"../x"}}`:                        "object.name",
		`{"object":{"apiVersion":"v1","kind":"Job","name":"x","namespace":"kube-system"}}`: "object.namespace",
		`{"object":{"apiVersion":"v1","kind":"Job","name":"x","value":"y"}}`:               "object.path",
		`{"object":{"apiVersion":"v1","kind":"Job","name":"x","path":".status"}}`:          "object.path",
		`{"object":{"apiVersion":"v1","kind":"Job","name":"x","path":"{.status[}"}}`:       "object.path",
		`{"quota":{"name":""}}`:                                                            "quota.name",
		`{"notBefore":"tomorrow"}`:                                                         "notBefore",
		`{"notBefore":"2026-11-30 22:00"}`:                                                 "notBefore",
		`{"window":{"zone":"Mars/Base","from":"22:00","to":"06:00"}}`:                      "window.zone",
		`{"window":{"zone":"Local","from":"22:00","to":"06:00"}}`:                          "window.zone",
		`{"window":{"from":"22:00","to":"06:00"}}`:                                         "window.zone",
		`{"window":{"zone":"UTC","days":["Mon","Funday"],"from":"22:00","to":"06:00"}}`:    "window.days[1]",
		`{"window":{"zone":"UTC","days":["Mon","Mon"],"from":"22:00","to":"06:00"}}`:       "window.days[1]",
		`{"window":{"zone":"UTC","from":"24:00","to":"06:00"}}`:                            "window.from",
		`{"window":{"zone":"UTC","from":"2:00","to":"06:00"}}`:                             "window.from",
		`{"window":{"zone":"UTC","from":"22:00","to":"25:00"}}`:                            "window.to",
		`{"window":{"zone":"UTC","from":"22:00","to":"22:00"}}`:                            "window.to",
	} {
		got, found := condition.Decode(text)
		if len(found) == 0 {
			t.Errorf("%s: decoded as %+v", text, got)
		} else if said := found.ToAggregate().Error(); !strings.Contains(said, want) {
			t.Errorf("%s: %q does not say %q", text, said, want)
		}
	}
	if _, err := condition.Encode(&condition.Condition{Quota: &condition.Quota{}}); err == nil {
		t.Error("what Decode would refuse is encoded")
	}
	if _, err := condition.Of(nil, condition.Prefix+"a"); err == nil {
		t.Error("a pod without an annotation has a condition")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"object":{"apiVersion":"v1","kind":"Job","name":"x","path":"{.status.a[?(@.b==\"c\")]}"}}`)
	f.Add(`{"window":{"zone":"UTC","days":["Mon"],"from":"22:00","to":"06:00"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, found := condition.Decode(text)
		if len(found) > 0 {
			return
		}
		if again, err := condition.Encode(c); err != nil {
			t.Errorf("%q was decoded as %q, which is refused: %v", text, again, err)
		}
	})
}

// wall is what a window says of one minute of a wall clock.
func wall(w *condition.Window, t time.Time) bool {
	on := func(t time.Time) bool {
		if len(w.Days) == 0 {
			return true
		}
		for _, d := range w.Days {
			if string(d) == t.Weekday().String()[:3] {
				return true
			}
		}
		return false
	}
	now := t.Format("15:04")
	if w.From < w.To {
		return on(t) && w.From <= now && now < w.To
	}
	yesterday := time.Date(t.Year(), t.Month(), t.Day()-1, 12, 0, 0, 0, time.UTC)
	return on(t) && w.From <= now || on(yesterday) && now < w.To
}

// TestWindowNext holds that a window opens in the first minute that is in it, by
// going through the minutes, around the days on which clocks change.
func TestWindowNext(t *testing.T) {
	t.Parallel()
	changes := map[string][]string{
		"Europe/Berlin":    {"2026-03-29", "2026-10-25", "2027-03-28"},
		"America/New_York": {"2026-03-08", "2026-11-01", "2027-03-14"},
	}
	clock := rapid.Custom(func(t *rapid.T) string {
		// Mostly in the hours in which clocks change.
		hour := rapid.OneOf(rapid.IntRange(0, 4), rapid.IntRange(0, 23)).Draw(t, "hour")
		return time.Date(2000, 1, 1, hour, rapid.IntRange(0, 59).Draw(t, "minute"), 0, 0, time.UTC).Format("15:04")
	})
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"Europe/Berlin", "America/New_York"}).Draw(t, "zone")
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		w := &condition.Window{
			Zone: zone,
			Days: rapid.SliceOfNDistinct(rapid.SampledFrom([]condition.Day{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}), 0, 3, rapid.ID).Draw(t, "days"),
			From: clock.Draw(t, "from"),
		}
		// One that opens and closes at the same time is refused.
		w.To = rapid.OneOf(clock, rapid.Just("24:00")).Filter(func(to string) bool { return to != w.From }).Draw(t, "to")
		day, err := time.ParseInLocation(time.DateOnly, rapid.SampledFrom(changes[zone]).Draw(t, "change"), location)
		if err != nil {
			t.Fatal(err)
		}
		from := day.Add(time.Duration(rapid.IntRange(-8*24*60, 24*60).Draw(t, "minutes")) * time.Minute)
		want := from
		for !wall(w, want.In(location)) {
			if want = want.Add(time.Minute); want.Sub(from) > 15*24*time.Hour {
				t.Fatalf("%+v never opens after %s", w, from)
			}
		}
		got, err := w.Next(from)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equal(want) {
			t.Fatalf("%+v opens at %s after %s, not at %s", w, got, from, want)
		}
	})
}

// TestWindowOnChanges names what the clocks do on two nights in Berlin.
func TestWindowOnChanges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ from, to, after, want string }{
		{"02:15", "02:45", "2026-03-29T00:00:00+01:00", "2026-03-30T02:15:00+02:00"}, // left out
		{"02:15", "04:00", "2026-03-29T00:00:00+01:00", "2026-03-29T03:00:00+02:00"}, // the rest of it
		{"02:15", "02:45", "2026-10-25T00:00:00+02:00", "2026-10-25T02:15:00+02:00"},
		{"02:15", "02:45", "2026-10-25T02:45:00+02:00", "2026-10-25T02:15:00+01:00"}, // again
		{"02:15", "02:45", "2026-10-25T02:45:30+01:00", "2026-10-26T02:15:00+01:00"},
		{"22:00", "06:00", "2026-10-25T05:59:59+01:00", "2026-10-25T05:59:59+01:00"},
	} {
		after, err := time.Parse(time.RFC3339, test.after)
		if err != nil {
			t.Fatal(err)
		}
		w := &condition.Window{Zone: "Europe/Berlin", From: test.from, To: test.to}
		got, err := w.Next(after)
		if err != nil || got.Format(time.RFC3339) != test.want {
			t.Errorf("%s to %s after %s: %s (%v), not %s", test.from, test.to, test.after, got, err, test.want)
		}
	}
}
