package console

import (
	"net/http"
	"time"

	"weir/review"
)

const dashboardDays = 30

type dashboardData struct {
	*review.Dashboard
	Admit, Escalate, Block int
	Bars                   []bar
	Top                    int // of the scale
	Ages                   []row
	Rows                   []row
}

// bar is one day of the chart of outcomes.
type bar struct {
	review.DayOutcomes
	X     int
	Parts []part
	Label string // under the bar, "" for most
}

type part struct {
	Class     string
	Y, Height int
	Count     int
}

// row is one line of a chart that lies down.
type row struct {
	Name, Tagged string
	Count        int
	Parts        []part // Y is where it begins, Height how long it is
	Y            int
}

const (
	chartHeight = 160
	barStep     = 24
	rowWidth    = 420
)

func (c *Console) dashboard(w http.ResponseWriter, r *http.Request, v *visit) error {
	read, err := c.desk.Dashboard(r.Context(), v.Principal, dashboardDays)
	if err != nil {
		return err
	}
	d := dashboardData{Dashboard: read, Top: 1}
	for _, day := range read.Days {
		d.Admit, d.Escalate, d.Block = d.Admit+day.Admit, d.Escalate+day.Escalate, d.Block+day.Block
		d.Top = max(d.Top, day.Admit+day.Escalate+day.Block)
	}
	for i, day := range read.Days {
		b := bar{DayOutcomes: day, X: i * barStep}
		if t, err := time.Parse(time.DateOnly, string(day.Day)); err == nil && i%7 == 1 {
			b.Label = t.Format("2 Jan")
		}
		y := chartHeight
		for _, p := range []struct {
			class string
			n     int
		}{{"admit", day.Admit}, {"escalate", day.Escalate}, {"block", day.Block}} {
			if p.n == 0 {
				continue
			}
			h := max(2, p.n*chartHeight/d.Top)
			y -= h
			b.Parts = append(b.Parts, part{p.class, y, h, p.n})
		}
		d.Bars = append(d.Bars, b)
	}
	d.Ages = ageRows(read.Ages)
	most := 1
	for _, t := range read.Terms {
		most = max(most, t.Block+t.Escalate)
	}
	for i, t := range read.Terms {
		one := row{Tagged: t.Term, Count: t.Block + t.Escalate, Y: i * 30}
		x := 0
		for _, p := range []struct {
			class string
			n     int
		}{{"block", t.Block}, {"escalate", t.Escalate}} {
			if p.n > 0 {
				width := max(2, p.n*rowWidth/most)
				one.Parts = append(one.Parts, part{p.class, x, width, p.n})
				x += width
			}
		}
		d.Rows = append(d.Rows, one)
	}
	return c.render(w, r, v, http.StatusOK, "dashboard", "Dashboard", d)
}

func ageRows(ages []review.AgeCount) (rows []row) {
	most := 1
	for _, a := range ages {
		most = max(most, a.Count)
	}
	before := time.Duration(0)
	for i, a := range ages {
		name := "over " + span(before)
		switch {
		case before == 0:
			name = "under " + span(a.Below)
		case a.Below != 0:
			name = span(before) + " to " + span(a.Below)
		}
		one := row{Name: name, Count: a.Count, Y: i * 30}
		if a.Count > 0 {
			one.Parts = []part{{"age", 0, max(2, a.Count*rowWidth/most), a.Count}}
		}
		rows = append(rows, one)
		before = a.Below
	}
	return rows
}
