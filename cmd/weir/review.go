package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"weir/cmd/weir/client"
	"weir/review"
	"weir/screening"
)

func newReview() *cobra.Command {
	cmd := group("review", "Look at what waits for people, and decide it")
	cmd.AddCommand(newReviewList(), newReviewShow(), newReviewVote(), newReviewAsk(), newReviewComment(), newReviewCorrect(),
		newReviewClaim("claim", "Show for 30 minutes that you look at a review; no vote needs it", (*client.Client).Claim),
		newReviewClaim("release", "Give a claim back", (*client.Client).Release),
		newSubmitterSays("answer", "note", "Answer the reviewers' question, so that the review goes on", (*client.Client).Answer),
		newSubmitterSays("withdraw", "reason", "Take a screening back from review", (*client.Client).Withdraw),
		newSubmitterSays("appeal", "reason", "Ask other people to look at a block again", (*client.Client).Appeal),
		newSubmitterSays("reopen", "reason", "Go on with a review that expired", (*client.Client).Reopen),
		newWaive(), newConfirmWaiver(), newWaivers())
	return cmd
}

// reviewHeadline is where a review stands, in one word.
func reviewHeadline(r *client.Review) (word, colour string) {
	switch {
	case r.Outcome == "admit":
		return "ADMITTED", green
	case r.Outcome == "block":
		return "BLOCKED", red
	}
	return strings.ToUpper(strings.ReplaceAll(r.State, "_", " ")), yellow
}

func isLive(r *client.Review) bool {
	return r.State == "open" || r.State == "claimed" || r.State == "needs_evidence"
}

const minute = "2006-01-02 15:04 UTC"

func renderReview(out *lines, r *client.Review) {
	p := paintFor(out.w)
	word, colour := reviewHeadline(r)
	out.wrap(p.bold(colour, printable(word))+"  ", "", r.Screening.RunRef)
	if r.Kind != "escalation" {
		out.wrap("  ", "", "An "+map[string]string{"appeal": "appeal of a block", "reopen": "expired review that goes on"}[r.Kind]+"; see also review "+r.Origin+".")
	}
	if isLive(r) {
		out.put("  due        %s%s", r.DueAt.UTC().Format(minute), afterDue(r))
	}
	people := "submitted by " + r.Screening.Submitter
	if r.Screening.OnBehalfOf != "" {
		people += " for " + r.Screening.OnBehalfOf
	}
	out.wrap("  ", "  ", people+", owned by "+r.Screening.Owner)
	if e := r.Screening.Erased; e != nil {
		out.wrap("  ", "  ", erasedWords(e))
	}
	if d := r.Screening.Decision; d != nil {
		renderFindings(out, p, d)
		renderOpen(out, p, d)
		renderSayings(out, d)
	}
	for _, w := range r.Waived {
		out.put("")
		out.wrap("  waived until "+w.Until.UTC().Format(minute)+"  ", "    ", w.Term)
	}
	renderPanels(out, p, r)
	for _, n := range r.Notes {
		out.put("")
		out.wrap("  "+p.bold(plain, printable(n.Kind))+"  ", "", n.Person+", "+n.At.UTC().Format(minute))
		out.wrap("    ", "    ", n.Text)
	}
	out.put("")
	out.put("  review     %s", printable(r.ID))
	out.put("  version    %d", r.Version)
	out.put("  screening  %s", printable(r.Screening.ID))
	out.put("  spec       %s", r.Screening.SpecSHA256)
}

// afterDue says what happens at the due time.
func afterDue(r *client.Review) string {
	switch {
	case r.State == "needs_evidence":
		return ", the submitter's turn"
	case r.ExpiresAt != nil && r.ExpiresAt.Equal(r.DueAt):
		return ", then it expires"
	}
	return ", then the next panel takes over"
}

func renderPanels(out *lines, p paint, r *client.Review) {
	for _, panel := range r.Panels {
		out.put("")
		admits := 0
		for _, v := range panel.Votes {
			if v.Vote == "admit" {
				admits++
			}
		}
		stands := fmt.Sprintf("%d of %d", admits, panel.Quorum)
		switch {
		case panel.PassedAt != nil:
			stands = "passed on"
		case !panel.Begun:
			stands = "not its turn yet"
		case isLive(r) && panel.DueAt != nil:
			stands += ", due " + panel.DueAt.UTC().Format(minute)
		}
		if panel.Then != "" {
			stands += ", then " + panel.Then
		}
		out.wrap("  panel "+p.bold(plain, printable(panel.Policy))+"  ", "    ", "group "+panel.Group+": "+stands)
		if panel.ClaimedBy != "" {
			out.wrap("    ", "      ", panel.ClaimedBy+" looks at it")
		}
		out.wrap("    ", "      ", strings.Join(panel.Terms, " "))
		for _, v := range panel.Votes {
			from := ""
			if v.Origin != "" {
				from = " (carried over)"
			}
			out.wrap("    "+p.bold(map[string]string{"admit": green, "block": red}[v.Vote], printable(v.Vote))+"  ", "      ", v.Person+from+": "+v.Reason)
			if len(v.Facts) > 0 {
				out.wrap("      stated ", "        ", string(v.Facts))
			}
		}
	}
}

// renderFindings shows each finding that caused a decision: where, why, and what
// would make it pass.
func renderFindings(out *lines, p paint, d *screening.Decision) {
	for _, c := range d.Causes {
		f, ok := d.Finding(c.Term)
		if !ok {
			continue
		}
		out.put("")
		out.wrap("  "+p.bold(plain, printable(c.Term))+"  ", "      ", fmt.Sprintf("%s%s, %s", c.Effect, raisedBy(c.Raised), c.Severity))
		out.wrap("    ", "", c.Title)
		for i, ev := range shownEvidence(f.Evidence) {
			label := "where   "
			if i > 0 {
				label = "        "
			}
			out.wrap("    "+label, "            ", ev)
		}
		out.wrap("    why     ", "            ", f.Reason)
		if c.Remedy != "" {
			out.wrap("    passes  ", "            ", c.Remedy)
		}
	}
}

func newReviewList() *cobra.Command {
	var f askFlags
	var all bool
	var limit int
	cmd := &cobra.Command{Use: "list", Short: "List what waits, the most urgent first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.ReviewList, error) {
				return c.Reviews(ctx, all, limit)
			}, showReviews)
		}}
	f.add(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "also those that are closed, newest first")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most, up to 500")
	return cmd
}

func showReviews(out *lines, list *client.ReviewList) {
	if len(list.Reviews) == 0 {
		out.put("nothing waits")
		return
	}
	p := paintFor(out.w)
	for i := range list.Reviews {
		r := &list.Reviews[i]
		word, colour := reviewHeadline(r)
		out.wrap(p.bold(colour, printable(word))+"  ", "  ", r.Screening.RunRef)
		var terms []string
		for _, panel := range r.Panels {
			terms = append(terms, panel.Terms...)
		}
		out.put("  %s  due %s", printable(r.ID), r.DueAt.UTC().Format(minute))
		out.wrap("  ", "    ", strings.Join(terms, " "))
	}
	if list.Next != "" {
		out.put("there are more; see --limit")
	}
}

func newReviewShow() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{Use: "show REVIEW", Short: "Show a review: findings, panels, votes and notes", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Review, error) { return c.Review(ctx, args[0]) }, renderReview)
		}}
	f.add(cmd)
	return cmd
}

func newReviewVote() *cobra.Command {
	var f askFlags
	var reason string
	var terms, facts []string
	var version int
	cmd := &cobra.Command{Use: "vote REVIEW admit|block", Short: "Vote on a review",
		Long: "Votes on a review. --terms cites the findings that the vote answers; all stands\n" +
			"for every one. Where a safety term could not be checked, an admit has to state\n" +
			"what upholds it: --fact '/disclosures={tag: minors, state: absent, basis:\n" +
			"structured}', once for each.",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			stated, err := readFacts(facts)
			if err != nil {
				return exitWith(exitUsage, err)
			}
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Review, error) {
				r, err := c.Review(ctx, args[0])
				if err != nil {
					return nil, err
				}
				v := client.Vote{ExpectedVersion: cmp.Or(version, r.Version), SpecSHA256: r.Screening.SpecSHA256, Vote: args[1], Reason: reason, Terms: terms, Facts: stated}
				if slices.Equal(terms, []string{"all"}) {
					v.Terms = nil
					for _, panel := range r.Panels {
						if panel.Begun {
							v.Terms = append(v.Terms, panel.Terms...)
						}
					}
				}
				return c.Vote(ctx, args[0], v)
			}, renderReview)
		}}
	f.add(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	cmd.Flags().StringSliceVar(&terms, "terms", nil, "findings that the vote answers, by tagged id, or all")
	cmd.Flags().StringArrayVar(&facts, "fact", nil, "POINTER=VALUE, what upholds a safety term that is not checked")
	cmd.Flags().IntVar(&version, "version", 0, "the version that you looked at (default the one of now)")
	return cmd
}

// readFacts reads POINTER=VALUE, the value in JSON or YAML.
func readFacts(texts []string) (facts []review.Fact, err error) {
	for _, text := range texts {
		pointer, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, errors.New("--fact is written POINTER=VALUE, like /objective/purposes=[translation]")
		}
		var doc struct {
			Value jsontext.Value `json:"value"`
		}
		// Safety: one flow value on a line of its own cannot add keys of the document; what is none fails.
		if err := screening.Decode("fact", "", []byte("value: "+strings.ReplaceAll(value, "\n", " ")), &doc); err != nil {
			return nil, err
		}
		facts = append(facts, review.Fact{Pointer: pointer, Value: doc.Value})
	}
	return facts, nil
}

func newReviewClaim(act, short string, do func(*client.Client, context.Context, string) (*client.Review, error)) *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{Use: act + " REVIEW", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Review, error) { return do(c, ctx, args[0]) }, renderReview)
		}}
	f.add(cmd)
	return cmd
}

func newReviewAsk() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{Use: "ask REVIEW QUESTION", Short: "Ask the submitter; the review waits for the answer, at most 7 days", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Review, error) {
				return c.AskEvidence(ctx, args[0], args[1])
			}, renderReview)
		}}
	f.add(cmd)
	return cmd
}

func newReviewComment() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{Use: "comment REVIEW TEXT", Short: "Add a remark to a review", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Review, error) {
				return c.Comment(ctx, args[0], args[1])
			}, renderReview)
		}}
	f.add(cmd)
	return cmd
}

func newReviewCorrect() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{Use: "correct REVIEW FILE|-", Short: "Correct the decision that a review is about, through the review gate", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readInput(cmd.InOrStdin(), args[1])
			if err != nil {
				return exitWith(exitUsage, err)
			}
			return sendCorrection(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Correction, error) {
				return c.CorrectReview(ctx, args[0], client.CorrectionRequest{Text: string(text)})
			})
		}}
	f.add(cmd)
	return cmd
}

// newSubmitterSays is a command of the submitter's side: it says something about
// a screening.
func newSubmitterSays(act, key, short string, do func(*client.Client, context.Context, string, string) (*client.Screening, error)) *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{Use: act + " SCREENING " + strings.ToUpper(key), Short: short, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Screening, error) {
				return do(c, ctx, args[0], args[1])
			},
				func(out *lines, s *client.Screening) {
					word, colour := headline(s)
					out.wrap(paintFor(out.w).bold(colour, printable(word))+"  ", "", s.RunRef)
					renderFooter(out, s)
				})
		}}
	f.add(cmd)
	return cmd
}

func renderWaiver(out *lines, w *client.Waiver) {
	p := paintFor(out.w)
	word, colour := "IN FORCE", green
	switch {
	case w.InForce:
	case w.ConfirmedBy == "":
		word, colour = "NOT CONFIRMED", yellow
	default:
		word, colour = "ENDED", plain
	}
	out.wrap(p.bold(colour, word)+"  ", "", w.Term)
	out.put("  waiver     %s", printable(w.ID))
	out.put("  until      %s", w.ExpiresAt.UTC().Format(minute))
	scope := "the spec of screening " + w.ScreeningID
	if w.RunPrefix != "" {
		scope = "runs that begin with " + w.RunPrefix + ", with " + count(len(w.Inputs), "input digest", "input digests")
	}
	out.wrap("  for        ", "             ", scope)
	by := w.Author
	if w.ConfirmedBy != "" {
		by += ", confirmed by " + w.ConfirmedBy
	}
	out.wrap("  by         ", "             ", by)
	out.wrap("  why        ", "             ", w.Reason+" ("+w.Ticket+")")
}

func newWaive() *cobra.Command {
	var f askFlags
	var term, reason, ticket, prefix string
	var days int
	var inputs []string
	cmd := &cobra.Command{Use: "waive SCREENING", Short: "Ask for a waiver of one term; a second person confirms it",
		Long: "Asks to take one finding of an ethics term out of the fold, for this spec alone or,\n" +
			"with --run-prefix and --input, for runs with the same inputs. It is in force once\n" +
			"a second person of the panel confirms it.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			body := client.WaiverRequest{ScreeningID: args[0], Term: term, Reason: reason, Ticket: ticket, Days: days, RunPrefix: prefix, Inputs: inputs}
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Waiver, error) { return c.Waive(ctx, body) }, renderWaiver)
		}}
	f.add(cmd)
	cmd.Flags().StringVar(&term, "term", "", "the term, ethics:<id>")
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	cmd.Flags().StringVar(&ticket, "ticket", "", "where it was agreed")
	cmd.Flags().IntVar(&days, "days", 7, "how long, at most 30")
	cmd.Flags().StringVar(&prefix, "run-prefix", "", "beginning of the run_refs that it is for")
	cmd.Flags().StringSliceVar(&inputs, "input", nil, "a digest of each input of the finding, sha256:<hex>")
	return cmd
}

func newConfirmWaiver() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{Use: "confirm WAIVER", Short: "Confirm a waiver that somebody else of your panel asked for", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Waiver, error) {
				return c.ConfirmWaiver(ctx, args[0])
			}, renderWaiver)
		}}
	f.add(cmd)
	return cmd
}

func newWaivers() *cobra.Command {
	var f askFlags
	var of string
	cmd := &cobra.Command{Use: "waivers", Short: "List waivers, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.WaiverList, error) { return c.Waivers(ctx, of) },
				func(out *lines, list *client.WaiverList) {
					if len(list.Waivers) == 0 {
						out.put("no waivers")
					}
					for i := range list.Waivers {
						renderWaiver(out, &list.Waivers[i])
					}
				})
		}}
	f.add(cmd)
	cmd.Flags().StringVar(&of, "screening", "", "only those granted on this screening")
	return cmd
}
