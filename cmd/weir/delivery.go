package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir/cmd/weir/client"
	"weir/webhooks"
)

// attemptOutcome is what came of an attempt, in a few words.
func attemptOutcome(a *client.Attempt) string {
	switch {
	case a.Class == "":
		return fmt.Sprintf("delivered, status %d", a.Status)
	case a.Detail != "":
		return a.Class + ": " + a.Detail
	}
	return a.Class
}

func newDelivery() *cobra.Command {
	cmd := group("delivery", "Look at webhook deliveries and send them again")
	cmd.AddCommand(newDeliveryList(), newDeliveryShow(), newDeliveryRedeliver())
	return cmd
}

func newDeliveryList() *cobra.Command {
	var f askFlags
	var endpoint, state, typ, review, cursor string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List deliveries, newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := client.DeliveryQuery{Endpoint: endpoint, State: state, Type: typ, Review: review, Cursor: cursor, Limit: limit}
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.DeliveryList, error) { return c.Deliveries(ctx, q) }, func(out *lines, a *client.DeliveryList) {
				for i := range a.Deliveries {
					showDelivery(out, &a.Deliveries[i])
				}
				switch {
				case len(a.Deliveries) == 0:
					out.put("no deliveries")
				case a.Next != "":
					out.put("more: --cursor %s", printable(a.Next))
				}
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&endpoint, "endpoint", "", "only to this endpoint")
	cmd.Flags().StringVar(&state, "state", "", "only in this state: "+oneOf(webhooks.States()))
	cmd.Flags().StringVar(&typ, "type", "", "only of this type, for example review.opened")
	cmd.Flags().StringVar(&review, "review", "", "only about this review")
	cmd.Flags().StringVar(&cursor, "cursor", "", "go on after an earlier page")
	cmd.Flags().IntVar(&limit, "limit", 20, "how many")
	return cmd
}

func newDeliveryShow() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "show DELIVERY",
		Short: "Show a delivery with every attempt and the bytes that are sent",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Delivery, error) { return c.Delivery(ctx, args[0]) }, func(out *lines, d *client.Delivery) {
				showDelivery(out, d)
				out.wrap("  webhook-id  ", "", d.MessageID)
				for i := range d.Log {
					a := &d.Log[i]
					note := ""
					if a.Request != "" {
						note = ", asked for by hand"
					}
					out.wrap(fmt.Sprintf("  attempt %-3d ", a.Number), "",
						fmt.Sprintf("%s, %d ms%s, %s: %s", when(a.StartedAt), a.DurationMS, note, a.Address, attemptOutcome(a)))
				}
				out.wrap("  body  ", "", d.Body)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func showDelivery(out *lines, d *client.Delivery) {
	out.put("%s  %s", printable(d.ID), printable(d.State))
	out.wrap("  ", "", fmt.Sprintf("%s to %s, %s", d.Type, d.Endpoint, when(d.CreatedAt)))
	if d.ReviewID != "" {
		out.wrap("  ", "", "review "+d.ReviewID)
	}
	if d.Last != nil {
		out.wrap("  ", "", fmt.Sprintf("%s; last %s", count(d.Attempts, "attempt", "attempts"), attemptOutcome(d.Last)))
	}
	if d.DueAt != nil {
		out.wrap("  ", "", "next attempt "+when(*d.DueAt))
	}
}

func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

func newDeliveryRedeliver() *cobra.Command {
	var f askFlags
	var endpoint, since string
	cmd := &cobra.Command{
		Use:   "redeliver [DELIVERY]",
		Short: "Send a delivery again, or all that failed at an endpoint",
		Long: "Sends a message again, whatever became of it: the same id and the same bytes,\n" +
			"with the schedule from its start. With --endpoint and --since, all that failed\n" +
			"there since then, and what waits for its next attempt.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && endpoint == "" && since == "":
				return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Redelivery, error) {
					return c.Redeliver(ctx, args[0])
				}, func(out *lines, a *client.Redelivery) {
					out.put("sent again; request %s", printable(a.Request))
				})
			case len(args) == 0 && endpoint != "" && since != "":
				at, err := parseSince(since, time.Now())
				if err != nil {
					return err
				}
				return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Redeliveries, error) {
					return c.RedeliverFailed(ctx, endpoint, at)
				}, func(out *lines, a *client.Redeliveries) {
					out.put("%s sent again; request %s", count(a.Deliveries, "delivery is", "deliveries are"), printable(a.Request))
				})
			}
			return exitWith(exitUsage, errors.New("give a delivery's id, or --endpoint and --since"))
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&endpoint, "endpoint", "", "all that failed at this endpoint")
	cmd.Flags().StringVar(&since, "since", "", "since when: a time like 2026-11-30T18:00:00Z, or how long ago, like 6h")
	return cmd
}

// parseSince reads a time, or a time span before now.
func parseSince(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	return time.Time{}, exitWith(exitUsage, errors.New("--since must be a time like 2026-11-30T18:00:00Z, or a time span like 6h"))
}

func newEndpoint() *cobra.Command {
	cmd := group("endpoint", "Look at webhook endpoints, stop, start and test them")
	cmd.AddCommand(newEndpointList(), newEndpointShow(),
		newEndpointChange("enable", "Send to an endpoint again, and release what is held for it", (*client.Client).EnableEndpoint),
		newEndpointChange("disable", "Send nothing more to an endpoint; messages are held", (*client.Client).DisableEndpoint),
		newEndpointPing(), newEndpointSecret())
	return cmd
}

func newEndpointList() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the endpoints and how they are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.EndpointList, error) { return c.Endpoints(ctx) }, func(out *lines, a *client.EndpointList) {
				for i := range a.Endpoints {
					showEndpoint(out, &a.Endpoints[i])
				}
				if len(a.Endpoints) == 0 {
					out.put("no endpoint is declared: nobody is told of an escalation")
				}
			})
		},
	}
	f.add(cmd)
	return cmd
}

func newEndpointShow() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "show ENDPOINT",
		Short: "Show an endpoint and what was done to it, by whom and why",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Endpoint, error) { return c.Endpoint(ctx, args[0]) }, func(out *lines, e *client.Endpoint) {
				showEndpoint(out, e)
				for _, ev := range e.Events {
					out.wrap("  "+when(ev.At)+"  ", "", fmt.Sprintf("%s by %s: %s", ev.Type, ev.Actor, ev.Reason))
				}
			})
		},
	}
	f.add(cmd)
	return cmd
}

func showEndpoint(out *lines, e *client.Endpoint) {
	out.put("%s  %s", printable(e.ID), printable(e.State))
	out.wrap("  ", "", fmt.Sprintf("%s, %s; %d waiting, %d held, %d dead", e.Host, cmp.Or(e.Format, "standard"), e.Waiting, e.Held, e.Dead))
	if e.Disabled != nil {
		out.wrap("  ", "", fmt.Sprintf("disabled %s by %s: %s", when(e.Disabled.At), e.Disabled.By, e.Disabled.Reason))
	}
	if e.FailingSince != nil {
		out.wrap("  ", "", fmt.Sprintf("%s in a row, since %s", count(e.Failures, "failure", "failures"), when(*e.FailingSince)))
	}
	if e.CoolingUntil != nil {
		out.wrap("  ", "", "next try "+when(*e.CoolingUntil))
	}
}

func newEndpointChange(verb, short string, do func(*client.Client, context.Context, string, string) (*client.Endpoint, error)) *cobra.Command {
	var f askFlags
	var reason string
	cmd := &cobra.Command{
		Use:   verb + " ENDPOINT",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ask(cmd, &f, func(ctx context.Context, c *client.Client) (*client.Endpoint, error) {
				return do(c, ctx, args[0], reason)
			}, showEndpoint)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is recorded with your name")
	if err := cmd.MarkFlagRequired("reason"); err != nil {
		panic(err) // the flag is declared one line up
	}
	return cmd
}

func newEndpointPing() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "ping ENDPOINT",
		Short: "Send a signed test message and say what came of it",
		Long: "Sends one message of type endpoint.ping, also to an endpoint that is disabled\n" +
			"or cooling down, and waits for what comes of it: exit code 0 if the receiver\n" +
			"took it, 1 if not, 20 if that is not known in time.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return ping(cmd, &f, args[0]) },
	}
	f.add(cmd)
	return cmd
}

func ping(cmd *cobra.Command, f *askFlags, endpoint string) error {
	if err := checkOutput(f.output); err != nil {
		return err
	}
	c, err := f.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	sent, err := c.PingEndpoint(ctx, endpoint)
	if err != nil {
		return err
	}
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		d, err := c.Delivery(ctx, sent.Delivery)
		if err != nil {
			return err
		}
		if d.FinishedAt != nil && d.Last != nil {
			if f.output == "json" {
				err = printJSON(cmd.OutOrStdout(), d.Raw)
			} else {
				out := &lines{w: cmd.OutOrStdout()}
				out.wrap("", "", fmt.Sprintf("%s, %d ms, %s", attemptOutcome(d.Last), d.Last.DurationMS, d.Last.Address))
				err = out.err
			}
			if err == nil && d.State != "delivered" {
				err = exitWith(exitFailed, nil)
			}
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return exitWith(exitNoAnswer, fmt.Errorf("the test message is still under way; weir delivery show %s", printable(sent.Delivery)))
		}
	}
}

func newEndpointSecret() *cobra.Command {
	var asymmetric bool
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Make a signing secret",
		Long: "Prints a new secret for an endpoint: whsec_… signs and verifies. With --ed25519\n" +
			"two lines: whsk_… signs, for weir, and whpk_… verifies, for the receiver.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := webhooks.NewSecret()
			if asymmetric {
				private, public, err := webhooks.NewKeyPair()
				if err != nil {
					return exitWith(exitFailed, err)
				}
				text = private + "\n" + public
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().BoolVar(&asymmetric, "ed25519", false, "a key pair for v1a signatures")
	return cmd
}
