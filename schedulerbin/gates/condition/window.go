package condition

import (
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // a time zone must be known wherever a condition is read

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Window is a time of the week, by the clock on a wall: it is open whenever that
// clock shows a time in it. So on the day when a clock is put forward, a window in
// the hour that is left out does not open, and on the day when it is put back, one
// in the hour that comes twice opens twice.
type Window struct {
	// Zone is the name of an IANA time zone ("Europe/Berlin").
	Zone string `json:"zone"`
	// Days are the days on which the window begins; all if there are none.
	Days []Day `json:"days,omitempty"`
	// From and To are times of the day ("22:00"). A window whose end is not after
	// its beginning goes over midnight. "24:00" is the end of the day.
	From string `json:"from"`
	To   string `json:"to"`
}

// Day is a day of the week.
type Day string

// days are the names of the days, by time.Weekday.
var days = [...]Day{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// endOfDay is 24:00, in minutes.
const endOfDay = 24 * 60

// week is a Window to calculate with.
type week struct {
	zone     *time.Location
	from, to int // minutes of the day
	on       [7]bool
}

func (w *Window) validate(at *field.Path) field.ErrorList {
	_, found := w.parse(at)
	return found
}

func (w *Window) parse(at *field.Path) (*week, field.ErrorList) {
	var found field.ErrorList
	zone, err := time.LoadLocation(w.Zone)
	if err != nil || w.Zone == "" || w.Zone == "Local" {
		found = append(found, field.Invalid(at.Child("zone"), w.Zone, `is no IANA time zone; write one like "Europe/Berlin"`))
	}
	out := &week{zone: zone}
	for i, day := range w.Days {
		n := slices.Index(days[:], day)
		switch {
		case n < 0:
			found = append(found, field.NotSupported(at.Child("days").Index(i), day, days[:]))
		case out.on[n]:
			found = append(found, field.Duplicate(at.Child("days").Index(i), day))
		default:
			out.on[n] = true
		}
	}
	if len(w.Days) == 0 {
		out.on = [7]bool{true, true, true, true, true, true, true}
	}
	var ok bool
	if out.from, ok = minutes(w.From); !ok || out.from == endOfDay {
		found = append(found, field.Invalid(at.Child("from"), w.From, `is no time of the day; write one like "22:00"`))
	}
	if out.to, ok = minutes(w.To); !ok {
		found = append(found, field.Invalid(at.Child("to"), w.To, `is no time of the day; write one like "06:00"`))
	}
	if len(found) == 0 && out.from == out.to {
		found = append(found, field.Invalid(at.Child("to"), w.To, `must not be when the window begins; a whole day is from "00:00" to "24:00"`))
	}
	return out, found
}

// minutes reads a time of the day.
func minutes(text string) (int, bool) {
	if text == "24:00" {
		return endOfDay, true
	}
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return 0, false
	}
	return t.Hour()*60 + t.Minute(), true
}

// Next returns the first moment, not before t, at which the window is open: t
// itself if it is open then. A window that cannot be read is an error.
func (w *Window) Next(t time.Time) (time.Time, error) {
	parsed, found := w.parse(nil)
	if len(found) > 0 {
		return time.Time{}, fmt.Errorf("read the window: %w", found.ToAggregate())
	}
	return parsed.next(t), nil
}

// open reports whether the window is open at a time of its zone.
func (w *week) open(t time.Time) bool {
	minute, day := t.Hour()*60+t.Minute(), int(t.Weekday())
	if w.from < w.to {
		return w.on[day] && w.from <= minute && minute < w.to
	}
	return w.on[day] && minute >= w.from || w.on[(day+6)%7] && minute < w.to
}

// next goes from one change of the zone's clock to the next: between them the
// clock shows each moment of a day once, in order.
func (w *week) next(t time.Time) time.Time {
	t = t.In(w.zone)
	for {
		if w.open(t) {
			return t
		}
		_, change := t.ZoneBounds()
		opens := w.opening(t)
		if change.IsZero() || opens.Before(change) {
			return opens
		}
		t = change.In(w.zone)
	}
}

// opening returns when the window begins next after t, if the clock does not
// change until then.
func (w *week) opening(t time.Time) time.Time {
	_, offset := t.Zone()
	fixed := t.In(time.FixedZone("", offset))
	year, month, day := fixed.Date()
	for n := 0; ; n++ {
		begins := time.Date(year, month, day+n, w.from/60, w.from%60, 0, 0, fixed.Location())
		if w.on[begins.Weekday()] && begins.After(t) {
			return begins.In(w.zone)
		}
	}
}
